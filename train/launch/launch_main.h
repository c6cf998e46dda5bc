// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring launch args...`, from the command line to the exit code: launch()'s codes, 2 for a command line that is
/// not understood, 3 if the machine cannot start workers. Writes what is wrong to stderr.
int launch_main(std::span<const std::string> args);

}  // namespace gradring::train
