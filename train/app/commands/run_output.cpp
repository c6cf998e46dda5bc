// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/run_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <iterator>
#include <utility>

#include "kernels/base/directory.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/setup/shared_run_dir.h"
#include "train/core/trainer/nan_policy.h"
#include "train/core/trainer/trainer_world.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/exit_code.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// The folder of a launcher that may restart the ranks, after a failure or when a node joins or leaves.
fs::path launch_folder_of(const WorkerEnvironment& environment) {
  const bool restarts = environment.max_restarts > 0 || !environment.node_address.empty();
  return restarts && !environment.store_path.empty() ? fs::path(environment.store_path).parent_path() : fs::path();
}

/// Empty if it cannot be read, or is larger than any that gradring writes.
std::optional<std::string> text_of(FileSystem& files, const fs::path& path) try {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const auto file = files.open(path);
  if (file->size() > kMostBytes) return std::nullopt;
  return read_text(*file, path, 0, file->size());
} catch (const Error&) {
  return std::nullopt;
}

fs::path shown(const fs::path& path) {
  std::error_code ignored;
  const fs::path relative = path.lexically_proximate(fs::current_path(ignored));
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

}  // namespace

RunOutput::RunOutput(const TrainConfig& config, const WorkerEnvironment& environment)
    : config_(config), launch_folder_(launch_folder_of(environment)), restarted_(environment.restart_count > 0) {
  if (const auto named = named_run_dir(config.run_dir)) path_ = last_path_ = fs::absolute(*named);
}

/// Ranks that are started again must not resume what is at the path now, or begin anew there.
void RunOutput::check_restarted() {
  if (!restarted_ || launch_folder_.empty() || path_.empty()) return;
  const auto identity = text_of(files_, RunFolder::run_directory_file(launch_folder_));
  if (identity && !names_identified(path_, *identity))
    throw EnvironmentError(
        fmt::format("--run-dir {} is not the directory in which this run has begun: that one was "
                    "moved or removed; resume it where it is",
                    path_.string()));
}

Start RunOutput::find_start() {
  check_restarted();
  const auto named = path_.empty() ? std::nullopt : std::optional(path_);
  if (named && config_.resume != "none" && state_of(*named) == RunDirState::run)
    lock_ = RunLock(*named, launch_folder_);
  Start start = train::find_start(config_, named, files_, restarted_);
  if (start.in_place && !lock_) {  // another run created it in the meantime
    lock_ = RunLock(*named, launch_folder_);
    start = train::find_start(config_, named, files_, restarted_);
  }
  in_place_ = start.in_place;
  if (start.resume) {
    resumed_from_ = start.resume->from;
    before_ = saved_settings(start.resume->checkpoint);
  }
  if (const auto config = in_place_ ? text_of(files_, newest_config(files_, path_)) : std::nullopt;
      config && read_known_options(*config))
    before_ = config;
  return start;
}

std::optional<Summary> RunOutput::finished_before(const TrainingProgress& progress, bool is_over) {
  if (!in_place_ || !is_over) return std::nullopt;
  auto summary = Summary::from_json(text_of(files_, train::summary_of(path_)).value_or(""));
  if (!summary || summary->steps != progress.steps) return std::nullopt;
  lock_.release();
  return summary;
}

std::vector<std::string> RunOutput::open(const TrainConfig& resolved, const TrainingProgress& progress) {
  std::vector<std::string> remarks;
  if (in_place_ || !resumed_from_.empty())
    remarks = resume(resolved, progress);
  else
    make(resolved);
  if (!launch_folder_.empty())
    write_file_whole(RunFolder::run_directory_file(launch_folder_), identity_of(directory()));
  return remarks;
}

void RunOutput::make(const TrainConfig& resolved) {
  const bool generated = path_.empty();
  const std::string name = config_.name.empty() ? config_.dataset + "-" + config_.model : config_.name;
  const std::string origin = resumed_from_.empty() ? "" : source_line(resumed_from_);
  LockedRunDir made =
      make_run_dir({.path = generated ? fs::absolute(generated_run_dir(name, std::time(nullptr))) : path_,
                    .generated = generated,
                    .launch_folder = launch_folder_,
                    .config = origin + to_resolved_toml(resolved)});
  path_ = last_path_ = std::move(made.path);
  lock_ = std::move(made.lock);
}

std::vector<std::string> RunOutput::resume(const TrainConfig& resolved, const TrainingProgress& progress) {
  const auto compared = before_ ? changed_options(*before_, config_, resolved) : std::nullopt;
  const auto changes = compared.value_or(std::vector<ChangedOption>());
  const std::string where =
      resumed_from_.empty()
          ? fmt::format("no valid checkpoint in {}: training from step 0", shown(checkpoints_of(path_)).string())
          : fmt::format("resumed from {}: {} step{} done, in epoch {}", shown(resumed_from_).string(), progress.steps,
                        progress.steps == 1 ? "" : "s", progress.epoch + 1);
  std::string options = compared ? "no option changed" : "the options of its run are not known";
  if (!changes.empty()) options = "changed options: " + to_string(changes);
  if (!in_place_) {
    make(resolved);
    return {where + "; " + options};
  }
  if (!changes.empty() || !files_.exists(newest_config(files_, path_))) {  // first, so that a full disk removes nothing
    const std::string head = fmt::format("# Since step {}, {}\n", progress.steps, options);
    options +=
        fmt::format(" ({})", write_next_config(directory(), head + to_resolved_toml(resolved)).filename().string());
  }
  truncate_metrics(directory().at(metrics_of(path_)), progress.steps, progress.epoch);
  const bool own = !resumed_from_.empty() && is_own_checkpoint(path_, resumed_from_);
  std::vector<std::string> remarks = checkpoints().abandon_after(own ? progress.steps : -1);
  remarks.insert(remarks.begin(), where + "; " + options);
  return remarks;
}

CheckpointDirectory RunOutput::checkpoints() {
  return {files_,
          checkpoints_of(path_),
          {.keep_last = static_cast<int>(config_.keep_last), .keep_best = static_cast<int>(config_.keep_best)}};
}

void RunOutput::begin() const {
  const FileAt summary = directory().at(train::summary_of(path_));
  ::unlinkat(summary.directory(), summary.name(), 0);  // there may be none
}

std::vector<std::string> RunOutput::check_directory() {
  lock_.check_held();
  const fs::path now = current_path();
  if (now == std::exchange(last_path_, now)) return {};
  return {fmt::format("the run directory {} was moved to {}: the run continues there", shown(path_).string(),
                      shown(now).string())};
}

void RunOutput::finish(const Summary& summary) {
  lock_.check_held();
  write_file_whole(directory().at(train::summary_of(path_)), summary.to_json());
  lock_.release();
}

void RunOutput::fail(const UnfinishedRun& run) noexcept try {
  lock_.check_held();
  write_file_whole(directory().at(train::summary_of(path_)), run.to_json());
} catch (...) {  // a full disk; the error that ended the run is the one to report
}

fs::path RunOutput::shown_source() const { return resumed_from_.empty() ? fs::path() : shown(resumed_from_); }

fs::path RunOutput::current_path() const {
  const fs::path now = directory() ? directory().current_path() : path_;
  return now.empty() ? path_ : now;
}

fs::path RunOutput::shown_path() const {
  if (const fs::path now = current_path(); now != path_) return shown(now);
  const auto named = named_run_dir(config_.run_dir);
  return named ? *named : shown(path_);
}

Outcome outcome_of(const std::exception& error) {
  if (dynamic_cast<const Preempted*>(&error)) return Outcome::interrupted;
  return dynamic_cast<const DivergedError*>(&error) ? Outcome::diverged : Outcome::failed;
}

UnfinishedRun unfinished_run(const std::exception& error, const TrainingProgress& made, const TrainConfig& resolved,
                             int world_size) {
  return {.outcome = outcome_of(error),
          .reason = message_of(error),
          .steps = made.steps,
          .epoch = made.epoch,
          .seconds = made.seconds,
          .samples_per_second = made.seconds > 0 ? static_cast<double>(made.samples) / made.seconds : 0,
          .world_size = world_size,
          .device = shown_device(resolved.device, resolved.simulate_gpu),
          .backend = resolved.backend,
          .precision = resolved.precision};
}

}  // namespace gradring::train
