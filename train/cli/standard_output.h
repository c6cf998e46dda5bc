// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace gradring::train {

/// Whether this is stdio's failure to write standard output. Who reports a command's errors lets it pass, to main().
bool is_output_failure(const std::exception& error);

/// Writes out what stdout holds, for a command that shows results as they come.
///
/// Errors    std::system_error, which is_output_failure knows.
void flush_standard_output();

/// The end of every command: a result counts once it is written, and stdio may have kept it until now. Writes out what stdout
/// holds. Where that fails, or `failure` has come from a command, says so on stderr, once, but for a pipe whose reader has
/// gone.
///
/// Returns   `code` if all is written, or if the command has failed anyway; 141, as a shell says SIGPIPE, if the reader has gone;
///           3 otherwise: a full disk.
int finish_standard_output(int code, const std::exception* failure = nullptr);

}  // namespace gradring::train
