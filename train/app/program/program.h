// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "train/options/commands.h"

namespace gradring::train {

/// Runs `gradring ARGS`, or `gradring launch ARGS` if the program is called gradrun. An error is printed once on
/// stderr, or left for the launcher to print.
///
/// Returns   the exit code.
/// Errors    a failure to write standard output, for finish_standard_output.
int run_program(Arguments args, std::string_view program);

}  // namespace gradring::train
