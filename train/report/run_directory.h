// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "train/config/train_config.h"
#include "train/report/run_lock.h"

namespace gradring::train {

/// The run directory keeps the results of a run: config.resolved.toml, metrics.jsonl, summary.json, checkpoints/,
/// logs/rank_<N>.log. While the run lasts it is locked (run_lock.h).
/// (launch/run_folder.h is another thing: where processes meet while they run, and nothing of it stays.)

/// What --run-dir names, without a slash behind it; nothing where it is not given.
std::optional<std::filesystem::path> named_run_dir(const TrainConfig& config);

/// runs/<dataset>-<model>-<time>, in local time to the second: where --run-dir is not given.
std::filesystem::path generated_run_dir(const TrainConfig& config, std::time_t now);

/// What is found under the name of a run directory.
enum class RunDirState : std::uint8_t {
  absent,
  vacant,  ///< an empty directory, or one in which make_run_dir was killed
  run,     ///< a run directory: it holds config.resolved.toml, or a checkpoint where somebody removed that
  other,
};

/// Errors    EnvironmentError if it cannot be read.
RunDirState state_of(const std::filesystem::path& path);

/// Checks that a run may start in `path`: it does not exist or is an empty directory. Called early, before work or a wait for
/// other ranks is lost.
///
/// Errors    UsageError.
void check_new_run_dir(const std::filesystem::path& path);

/// Checks that this is a run directory, before a run resumes in it.
///
/// Errors    UsageError.
void check_is_run_dir(const std::filesystem::path& path);

/// A run directory to be made.
struct NewRunDir {
  std::filesystem::path path{};
  bool generated = false;                 ///< then another run may have taken the name: NAME-2, NAME-3, ... do as well
  std::filesystem::path launch_folder{};  ///< as RunLock
  std::string config{};                   ///< the text of config.resolved.toml
};

/// A run directory that this process has locked.
struct LockedRunDir {
  std::filesystem::path path{};
  RunLock lock{};
};

/// Makes the run directory, locks it, and writes config.resolved.toml and an empty logs/ into it. A vacant directory may be
/// there. Of several processes that make one of the same name at the same time, each gets its own (a generated name) or one
/// gets it. Nothing but parent directories is left if this fails.
///
/// Errors    UsageError if another run has the name, or it is not vacant; EnvironmentError if it cannot be made or written.
LockedRunDir make_run_dir(const NewRunDir& spec);

/// Makes ready for a run that resumes in its directory after `steps` steps, in epoch `epoch`: removes later lines of the
/// metrics.
///
/// Errors    EnvironmentError.
void continue_run_dir(const std::filesystem::path& path, std::int64_t steps, std::int64_t epoch);

/// checkpoints/
std::filesystem::path checkpoints_of(const std::filesystem::path& run_dir);
std::filesystem::path metrics_of(const std::filesystem::path& run_dir);
std::filesystem::path summary_of(const std::filesystem::path& run_dir);
/// logs/rank_<N>.log
std::filesystem::path log_file(const std::filesystem::path& run_dir, int rank);

}  // namespace gradring::train
