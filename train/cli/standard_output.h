// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>

namespace gradring::train {

/// Opens /dev/null as each of stdin, stdout and stderr that is closed. Otherwise the next file or shared memory that is
/// opened would get its number, and receive what is printed. Called first in main().
void reserve_standard_streams();

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

/// Prints the JSON of a command with --json. Bytes that are not UTF-8, for example of a file's name, become U+FFFD.
void print_json(const nlohmann::ordered_json& json);

}  // namespace gradring::train
