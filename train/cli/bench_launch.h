// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench launch`: what the launcher itself costs, beside torchrun.
///
/// Errors    UsageError; EnvironmentError if a launcher does not end well.
void bench_launch(std::span<const std::string> args);

}  // namespace gradring::train
