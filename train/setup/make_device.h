// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"

namespace gradring::train {

/// The device that a user named: auto, cpu, cuda, cuda:<index>. A CPU device runs kernels on so many threads.
///
/// Errors    EnvironmentError if it is not there; says what is missing.
std::unique_ptr<kernels::Device> make_device(const std::string& name, unsigned threads);

/// The backend that a user named: auto, reference, cpu; the last computes with so many threads, called by this one.
///
/// Errors    UsageError if it cannot compute on that device.
std::unique_ptr<nn::Backend> make_backend(const std::string& name, const kernels::Device& device, unsigned threads);

}  // namespace gradring::train
