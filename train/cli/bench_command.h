// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench WHAT [options]`: measures, and prints a table that says the machine, the date and the commit.
/// Returns the exit code.
int bench_main(std::span<const std::string> args);

}  // namespace gradring::train
