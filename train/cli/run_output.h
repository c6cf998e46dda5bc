// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/file_system.h"
#include "train/config/train_config.h"
#include "train/launch/worker_environment.h"
#include "train/report/run_lock.h"
#include "train/report/summary.h"
#include "train/setup/start.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// Rank 0's run directory, from the first look at it to the last file: the lock, the config files, summary.json.
///
///   find_start(), finished_before(), and, if it had not: open(), begin(), then finish() or fail()
///
/// Threads   one.
class RunOutput {
 public:
  /// `files` must outlive it.
  RunOutput(const TrainConfig& config, const WorkerEnvironment& place, FileSystem& files);

  /// Locks the run directory, if it is one already, and finds where the run begins.
  ///
  /// Errors    as train::find_start; UsageError if another run holds the directory.
  Start find_start();

  /// The summary of the run in this directory, if it has finished where the training stands now: then nothing is left to do,
  /// and the lock is released.
  std::optional<Summary> finished_before(const TrainingProgress& progress, bool is_over);

  /// Makes the run directory, or makes it ready for a run that resumes in it after `progress`. `resolved` is the config as
  /// config.resolved.toml shows it.
  ///
  /// Returns   what to tell the user: from where the run resumes, with which options changed, and what did not work.
  /// Errors    as make_run_dir and continue_run_dir.
  std::vector<std::string> open(const TrainConfig& resolved, const TrainingProgress& progress);

  /// Called when nothing is left that can stop the training from starting: removes the summary of an earlier start.
  void begin() const;
  /// Writes summary.json and releases the lock.
  ///
  /// Errors    EnvironmentError.
  void finish(const Summary& summary);
  /// Writes summary.json of a run that ends with an error, as far as the disk allows.
  void fail(const UnfinishedRun& run) noexcept;

  /// The run's checkpoints, of which as many stay as --keep-last and --keep-best say.
  CheckpointDirectory checkpoints() const;
  /// The run directory: absolute, once it is open or was named.
  const std::filesystem::path& path() const { return path_; }
  /// The same as the user gave it; a generated one relative to the working directory.
  std::filesystem::path shown_path() const;

 private:
  void make(const TrainConfig& resolved);
  std::vector<std::string> resume(const TrainConfig& resolved, const TrainingProgress& progress);

  TrainConfig config_;
  FileSystem& files_;
  std::filesystem::path launch_folder_;
  std::filesystem::path path_;
  RunLock lock_;
  bool in_place_ = false;
  std::filesystem::path resumed_from_;  // a checkpoint; empty: there is none
  std::optional<std::string> before_;   // the settings of the run that is resumed
};

}  // namespace gradring::train
