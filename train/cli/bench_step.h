// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench step`: how long a training step of one rank takes, and where its time goes.
///
/// Errors    UsageError, data::DataError, EnvironmentError, DeviceError.
void bench_step(std::span<const std::string> args);

}  // namespace gradring::train
