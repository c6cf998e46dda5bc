// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "train/launch/exit_code.h"

namespace gradring::train {

/// The exit code of what was thrown.
ExitCode exit_code_of(const std::exception& error);

/// What the person at the terminal reads about it.
std::string message_of(const std::exception& error);

}  // namespace gradring::train
