// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::train {

/// The exit code for an error.
ExitCode exit_code_of(const std::exception& error);

/// The message to print for it.
std::string message_of(const std::exception& error);

}  // namespace gradring::train
