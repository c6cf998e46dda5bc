// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/error.h"

namespace gradring::train {

/// An exit code, and when a process ends with it.
struct ExitCodeRow {
  int code = 0;  ///< negative: that of another program
  std::string_view meaning{};
};

/// All exit codes of gradring, for help texts, documents (docs/faults.md) and messages.
std::span<const ExitCodeRow> exit_code_table();

/// "Exit codes:" and a line for each row, for the notes of a command. A row without a meaning has that of the table.
std::string exit_codes_text(std::initializer_list<ExitCodeRow> rows);

/// ": a rank timed out or never started" for a code that only gradring has, from 161 on; empty for others.
std::string own_meaning_of(int code);

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
