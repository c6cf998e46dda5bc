// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "kernels/base/error.h"

namespace gradring::train {

/// The exit code for an error.
ExitCode exit_code_of(const std::exception& error);

/// The message to print for it.
std::string message_of(const std::exception& error);

/// Whether `error` is stdio's failure to write standard output. Functions that report a command's errors rethrow it;
/// main() handles it.
bool is_output_failure(const std::exception& error);

/// Writes out what stdout holds, for a command that shows results as they come.
///
/// Errors    std::system_error, which is_output_failure knows.
void flush_standard_output();

/// Called at the end of every command: flushes stdout. If that fails, or `failure` is such an error, reports it once on
/// stderr, except for a broken pipe.
///
/// Returns   `code` if all is written, or if the command has failed anyway; 141 (128 + SIGPIPE) for a broken pipe; 3
///           otherwise, for example for a full disk.
int finish_standard_output(int code, const std::exception* failure = nullptr);

}  // namespace gradring::train
