// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gradring::train {

/// Files by which the launcher and its workers exchange data. The launcher's readers never block.

/// A worker's error message in the error.json of torchrun:
/// {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "1700000000"}}}.
struct ErrorReport {
  std::string message;
  std::int64_t timestamp = 0;  ///< seconds since 1970; the smallest of a run is the root cause
};

/// For workers: writes `message` to `path` (WorkerEnvironment::error_file); the launcher prints it at the end. An empty
/// path does nothing. Returns whether it was written; if not, print the message yourself.
bool write_error_file(const std::string& path, const std::string& message);

/// For launchers: the report at `path`, also one of torch's workers; nothing if it is missing, invalid, not a regular
/// file (a FIFO) or larger than 1 MiB.
std::optional<ErrorReport> read_error_file(const std::string& path);

/// For workers: writes the step of the newest checkpoint, as a decimal number, atomically to `path`
/// (WorkerEnvironment::progress_file). An empty path does nothing. Returns whether it was written.
bool write_progress(const std::string& path, std::int64_t step);

/// For launchers: nothing unless it is a regular file with a number of 0 or more.
std::optional<std::int64_t> read_progress(const std::string& path);

/// For agents: writes the token by which the ranks of several nodes authenticate each other in one attempt
/// (comm::TcpGroupOptions::token): 64 hexadecimal digits in the file rank-token, mode 0600, in the folder
/// GRADRING_STORE. Each agent computes it for its own ranks, so that it is never sent.
///
/// Errors    DeviceError if it exists, or cannot be written.
void write_rank_token(const std::filesystem::path& store, const std::string& token);

/// For workers: empty if the store has no token: on one node, or under another launcher.
///
/// Errors    InvalidArgument if it cannot be read, or is accessible to others.
std::string read_rank_token(const std::filesystem::path& store);

/// The bytes of a file that a worker may have written; nothing if it is missing, not a regular file (a FIFO, a device),
/// unreadable or larger than `most_bytes`. Does not block.
std::optional<std::string> read_regular_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace gradring::train
