// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "train/launch/logs/log_spec.h"
#include "train/launch/logs/output_stream.h"

namespace gradring::train {

/// The files that a run leaves of its workers' output: DIR/<run id>/attempt_<n>/<local rank>/{stdout.log, stderr.log,
/// error.json}. A second run of the same id has <run id>_2. Where output is redirected and no --log-dir says where to,
/// the folder is made under $TMPDIR or /tmp, and stays.
///
/// Errors    DeviceError that names the folder that cannot be made.
class LogFolder {
 public:
  LogFolder(LogSpec spec, const std::string& run_id);

  /// Empty if this run keeps no files.
  const std::filesystem::path& path() const { return path_; }
  /// Nobody named the folder: the person has to be told.
  bool is_surprise() const { return is_surprise_; }
  /// Makes the folder of a worker's attempt and returns it; empty if this run keeps no files.
  std::filesystem::path of_worker(int attempt, int local_rank) const;
  /// How a stream of that worker goes, whose folder this is.
  OutputRoute route(Stream stream, const LineOwner& owner, const std::filesystem::path& folder) const;

 private:
  LogSpec spec_;
  bool is_surprise_ = false;
  std::filesystem::path path_;
};

}  // namespace gradring::train
