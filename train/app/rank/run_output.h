// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "kernels/base/directory.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/run_lock.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/trainer.h"
#include "train/core/trainer/training_state.h"
#include "train/launch/workers/worker_environment.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/metrics/run_events.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

/// A run directory. Rank 0 locks it and writes config files, checkpoints and summary.json; the other ranks open it for
/// their logs, and calls that only concern rank 0 do nothing there. Order of calls:
///
///   find_start(), finished_before(), and if it returns nothing: check_files(), open(), share(), begin(), then finish()
///   or fail()
///
/// Once it is open, its files are found in it wherever it is moved (Directory), and messages name them by its first
/// path.
///
/// Threads   one; check_directory: any, one at a time.
class RunOutput {
 public:
  RunOutput(const TrainConfig& config, const WorkerEnvironment& environment);
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;

  /// Rank 0 locks an existing run directory, finds the checkpoint to start from, and keeps settings of the run.
  ///
  /// Errors    as train::find_start; UsageError if another run holds the directory; EnvironmentError if a launcher has
  ///           started the ranks again, and it is not the directory in which they began.
  Start find_start();

  /// The options; after find_start() with what rank 0 keeps of the run in its directory (keep_settings).
  const TrainConfig& config() const { return config_; }

  /// The summary of the run in this directory if it had already finished at `progress`; then the lock is released.
  std::optional<Summary> finished_before(const TrainingProgress& progress, bool is_over);

  /// Before a resume changes a file of its directory, all ranks check that they can write theirs. Collective.
  ///
  /// Errors    as open_identified, RankLog and check_metrics.
  void check_files(comm::ProcessGroup& group) const;

  /// Creates the run directory, or prepares it for a run that resumes in it after `progress`. `resolved` is the config
  /// for config.resolved.toml.
  ///
  /// Returns   remarks for the user: the checkpoint, changed options, problems.
  /// Errors    as make_run_dir and continue_run_dir.
  std::vector<std::string> open(const TrainConfig& resolved, const TrainingProgress& progress);
  /// Opens rank 0's directory on the other ranks; where they do not share its disk, a new one of that path. Collective.
  ///
  /// Errors    as open_identified.
  void share(comm::ProcessGroup& group);

  /// Called just before training starts: removes the summary of an earlier start.
  void begin() const;
  /// Checks that the directory is still this run's.
  ///
  /// Returns   a remark if it was moved since the last call.
  /// Errors    as RunLock::check_held.
  std::vector<std::string> check_directory();
  /// Writes summary.json and releases the lock.
  ///
  /// Errors    EnvironmentError; as check_directory.
  void finish(const Summary& summary);
  /// Writes summary.json of a run that ends with an error, as far as the disk allows.
  void fail(const UnfinishedRun& run) noexcept;

  /// The run's checkpoints, pruned according to --keep-last and --keep-best.
  CheckpointDirectory checkpoints();
  /// The files of the run directory, and all others by their paths.
  FileSystem& files() { return files_; }
  const Directory& directory() const { return leads_ ? lock_.directory() : opened_; }
  /// The run directory: absolute, once it is open or was named.
  const std::filesystem::path& path() const { return path_; }
  /// Where it is now; path() if that is not known.
  std::filesystem::path current_path() const;
  /// The path as the user gave it; a generated one, or one to which it was moved, is relative to the working directory.
  std::filesystem::path shown_path() const;
  /// The checkpoint that the run resumes from, relative to the working directory if it is below; empty: there is none.
  std::filesystem::path shown_source() const;

 private:
  void check_restarted();
  void make(const TrainConfig& resolved);
  std::vector<std::string> resume(const TrainConfig& resolved, const TrainingProgress& progress);

  TrainConfig config_;
  bool leads_;
  std::filesystem::path launch_folder_;
  std::filesystem::path path_;
  RunLock lock_;      // rank 0's
  Directory opened_;  // of the other ranks
  PosixFileSystem files_{lock_.directory()};
  std::filesystem::path last_path_;  // that check_directory() found
  bool restarted_ = false;           // by a launcher, with the same command
  bool in_place_ = false;
  std::filesystem::path resumed_from_;  // a checkpoint; empty: there is none
  std::optional<std::string> before_;   // the settings of the run that is resumed
};

// Every rank writes its log into rank 0's run directory, and ranks that a launcher starts again resume in it. Its path
// could be that of another run by then.

/// What rank 0 tells the others of its run directory, as text.
std::string identity_of(const Directory& run_dir);

/// Opens the directory of identity_of(). On a machine that does not share rank 0's disk, creates one of that path.
///
/// Errors    EnvironmentError if it cannot be opened or created, or if this process sees the files that rank 0 sees and
///           the path names another directory.
Directory open_identified(const std::string& identity);

/// Whether `path` names the directory of identity_of(). True if `identity` is not such a text, or of another machine.
bool names_identified(const std::filesystem::path& path, const std::string& identity);

// run_records.cpp: what a run records of itself at its start and at its end.

/// The first event of a run in metrics.jsonl. `resolved` has no `auto` left.
RunHeader run_header(const TrainConfig& resolved, const Compute& compute, const Trainer& trainer,
                     const WorkerEnvironment& environment);

/// The last event of a run that finished.
EndRecord end_of(const Summary& summary);
/// The last event of a run that ended with `error` after `made`.
EndRecord end_of(const std::exception& error, const TrainingProgress& made);
/// summary.json of such a run.
UnfinishedRun unfinished_run(const std::exception& error, const TrainingProgress& made, const TrainConfig& resolved,
                             int world_size);

}  // namespace gradring::train
