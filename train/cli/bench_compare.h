// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench compare`: the same training by gradring and by PyTorch, in turns, on this machine.
///
/// Threads   the main thread of a process that has no other: it launches ranks.
/// Errors    UsageError, data::DataError, EnvironmentError, DeviceError.
void bench_compare(std::span<const std::string> args);

}  // namespace gradring::train
