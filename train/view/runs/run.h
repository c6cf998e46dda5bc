// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/records/metrics/run_history.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

// A run as its directory shows it to another process, also one on another machine that shares the disk. Reading a run
// changes nothing and does not disturb it.

enum class RunState : std::uint8_t {
  running,   ///< a process trains, or its launcher may start one
  finished,  ///< all steps are made
  stopped,   ///< interrupted by a signal, after a checkpoint
  failed,    ///< diverged, failed, or killed
};

/// The names of the states, in the order of the type.
inline constexpr std::array<std::string_view, 4> kRunStates = {"running", "finished", "stopped", "failed"};
inline std::string_view name_of(RunState state) { return kRunStates[static_cast<std::size_t>(state)]; }

/// What the evaluations on one set of samples found.
struct SplitFigures {
  std::optional<double> best_accuracy{};  ///< highest of all evaluations, 0..1
  std::int64_t best_step = 0;             ///< where that was
  std::optional<double> last_accuracy{};
  std::optional<double> last_loss{};
};

/// The values by which runs are listed and compared.
struct RunFigures {
  std::int64_t steps = 0;        ///< completed
  std::int64_t total_steps = 0;  ///< planned; 0: unknown
  SplitFigures validation{};     ///< the samples of --val-split
  SplitFigures test{};           ///< with a validation set, evaluated at the end only
  bool is_validated = false;     ///< whether there is a validation set
  /// Of the checkpoint that the link `best` names. Checkpoints are scored at the ends of epochs, so an evaluation within
  /// an epoch (--eval-every) may have been better.
  std::optional<double> best_saved_accuracy{};
  std::int64_t best_saved_step = 0;
  std::optional<double> last_loss{};           ///< of the last training step; NaN if it was not finite
  std::optional<double> samples_per_second{};  ///< over all steps, without evaluation
  double started = 0;                          ///< seconds since 1970; 0: unknown
  double seconds = 0;                          ///< between first and last event, without the pauses between starts

  /// The set that selects the best checkpoint.
  const SplitFigures& selecting() const { return is_validated ? validation : test; }
  /// Whether an evaluation was better than the best checkpoint.
  bool best_is_not_saved() const { return best_saved_accuracy && selecting().best_accuracy > best_saved_accuracy; }
};

struct Run {
  std::filesystem::path path{};  ///< of the run directory, without a trailing slash
  RunHistory history{};          ///< empty if there is no metrics.jsonl yet
  RunState state = RunState::failed;
  std::string reason{};  ///< why it is in that state: "interrupted: SIGTERM ..."; empty if the state says all
  RunFigures figures{};

  /// The name of its directory.
  std::string name() const { return path.filename().string(); }
  /// The newest start; an empty header if it is missing.
  const RunHeader& header() const;
};

/// summary.json, if the run has finished.
std::optional<Summary> finished_summary(const Run& run);

/// Whether `path` is a run directory: it holds metrics.jsonl, config.resolved.toml, or a checkpoint.
bool is_run(const std::filesystem::path& path);

/// The run directory that a user names: a run directory, its metrics.jsonl, or the name of a run in runs/.
///
/// Errors    UsageError if there is none.
std::filesystem::path find_run(const std::filesystem::path& named);

/// Seconds since 1970.
double wall_time();

/// As from_line, but of a training step reads only time, step, epoch, loss, samples and seconds, many times faster: for
/// lists of runs that have many steps.
std::optional<TimedEvent> skim_line(std::string_view line, std::string& problem);

/// Reads a run. `now` is in seconds since 1970, `reader` reads the lines of metrics.jsonl.
///
/// State     running: the lock is held (RunLock), or another host wrote it and the newest event is recent. Otherwise
///           the outcome in the last event or, if that is no end, in summary.json. Otherwise the run was killed.
/// Errors    UsageError as find_run; EnvironmentError if a file cannot be read.
Run open_run(const std::filesystem::path& named, double now = wall_time(), LineReader reader = from_line);

/// The split whose accuracy selects the best checkpoint: the validation set if it was evaluated, else the test set.
const char* selecting_split(const RunHistory& history);

/// Finds state and figures anew, after events were added to its history; in constant time.
void update(Run& run, double now);

/// The runs in a folder, in the order of their names; does not look into subfolders.
///
/// Errors    UsageError if `folder` is not a folder; EnvironmentError if it cannot be read.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder);

}  // namespace gradring::train
