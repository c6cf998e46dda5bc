// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradring::train {

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

}  // namespace gradring::train
