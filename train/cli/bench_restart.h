// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench restart`: from the crash of a rank to the first step after the restart.
///
/// Errors    UsageError; EnvironmentError if the training does not go on.
void bench_restart(std::span<const std::string> args);

}  // namespace gradring::train
