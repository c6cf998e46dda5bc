// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradring::train {

/// A worker's last words, in the error.json that torchrun reads and writes:
/// {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "1700000000"}}}.
struct ErrorReport {
  std::string message;
  std::int64_t timestamp = 0;  ///< seconds since 1970; the smallest of a run is the root cause
};

/// For workers: leaves `message` at `path` (WorkerEnvironment::error_file) for the launcher, which shows it once, at
/// the end. Does nothing if `path` is empty. Returns whether the message is there: if not, say it on stderr yourself.
bool write_error_file(const std::string& path, const std::string& message);

/// For launchers: the report at `path`, also one that torch's workers wrote; nothing if there is none or it is broken.
std::optional<ErrorReport> read_error_file(const std::string& path);

}  // namespace gradring::train
