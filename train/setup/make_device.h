// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// The device that a user named: auto, cpu, cuda, cuda:<index>. A CPU device runs kernels on this rank's share of the cores:
/// OMP_NUM_THREADS, or the cores divided by the ranks on this machine.
///
/// Errors    EnvironmentError if it is not there; says what is missing.
std::unique_ptr<kernels::Device> make_device(const std::string& name, const WorkerEnvironment& place,
                                             const VariableLookup& environment);

/// The backend that a user named: auto, reference, cpu.
///
/// Errors    UsageError if it cannot compute on that device.
std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device);

}  // namespace gradring::train
