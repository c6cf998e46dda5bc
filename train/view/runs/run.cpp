// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/host_name.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_lock.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/event_reader.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// A run on another host, whose lock may be invisible here, is taken as running for so long after its newest event.
constexpr double kRecentSeconds = 120;
/// The same in steps, for slow ones.
constexpr double kRecentSteps = 20;

struct State {
  RunState state = RunState::failed;
  std::string reason{};
};

State state_of(Outcome outcome, const std::string& reason) {
  if (outcome == Outcome::finished) return {.state = RunState::finished};
  // A run that failed says so by its state.
  const bool says_it = outcome == Outcome::failed || reason.starts_with(name_of(outcome));
  return {.state = outcome == Outcome::interrupted ? RunState::stopped : RunState::failed,
          .reason = says_it ? reason : fmt::format("{}{}{}", name_of(outcome), reason.empty() ? "" : ": ", reason)};
}

/// The text of summary.json; empty if there is none.
std::string summary_text(const fs::path& run_dir) {
  constexpr std::size_t kLargest = 1 << 20;
  try {
    std::error_code ignored;
    if (fs::is_regular_file(summary_of(run_dir), ignored)) return read_small_file(summary_of(run_dir), kLargest);
  } catch (const ReadError&) {
  }
  return {};
}

/// What summary.json says, if there is one.
std::optional<State> state_in_summary(const fs::path& run_dir) {
  const std::string text = summary_text(run_dir);
  if (Summary::from_json(text)) return State{.state = RunState::finished};
  if (const auto run = UnfinishedRun::from_json(text)) return state_of(run->outcome, run->reason);
  return std::nullopt;
}

/// When the file was last written, in seconds since 1970; 0 if it does not exist.
double written_at(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::duration<double>(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
}

bool is_recent(const Run& run, double now) {
  const double newest = std::max(run.history.last_time, written_at(metrics_of(run.path)));
  const double step = run.history.steps.empty() ? 0 : run.history.steps.back().record.duration.count();
  return now - newest < std::max(kRecentSeconds, kRecentSteps * step);
}

State find_state(const Run& run, double now) {
  const auto holder = lock_holder(run.path);
  if (holder && holder->is_alive)
    return {.state = RunState::running, .reason = fmt::format("process {} on host {}", holder->pid, holder->host)};
  if (run.history.has_ended) {
    const EndRecord& end = run.history.ends.back().record;
    return state_of(end.outcome, end.reason);
  }
  if (auto state = state_in_summary(run.path)) return *std::move(state);
  if (holder && !holder->host.empty() && holder->host != host_name() && is_recent(run, now))
    return {.state = RunState::running, .reason = fmt::format("process {} on host {}", holder->pid, holder->host)};
  return {.reason = "killed: it wrote no end, and its process is gone"};
}

/// Between the first and the last event of each start.
double seconds_of(const RunHistory& history) {
  if (history.headers.empty()) return history.sums.step_seconds;
  return history.sums.earlier_seconds + std::max(0.0, history.last_time - history.headers.back().time);
}

SplitFigures figures_of(const SplitSums& sums) {
  if (!sums.best) return {};
  return {.best_accuracy = sums.best->accuracy,
          .best_step = sums.best->step,
          .last_accuracy = sums.last->accuracy,
          .last_loss = sums.last->loss};
}

RunFigures figures_of(const RunHistory& history) {
  const HistorySums& sums = history.sums;
  RunFigures figures{.started = sums.started, .seconds = seconds_of(history)};
  if (!history.headers.empty()) {
    figures.total_steps = history.headers.back().record.total_steps;
    figures.steps = history.headers.back().record.resumed_from;
  }
  if (!history.steps.empty()) {
    figures.steps = std::max(figures.steps, history.steps.back().record.step);
    figures.last_loss = history.steps.back().record.loss;
    if (sums.step_seconds > 0) figures.samples_per_second = sums.samples / sums.step_seconds;
  }
  figures.validation = figures_of(sums.validation);
  figures.test = figures_of(sums.test);
  figures.is_validated = sums.validation.best.has_value();
  return figures;
}

/// The checkpoint that `best` names; nothing if it is missing or damaged. In a copy of a run, where `best` is a folder,
/// that of the highest score.
void add_best_checkpoint(const fs::path& run_dir, RunFigures& figures) try {
  PosixFileSystem files;
  const fs::path folder = checkpoints_of(run_dir);
  if (const auto target = target_of(files, folder / kBestLink)) {
    const CheckpointMeta meta = read_meta(files, folder / *target);
    figures.best_saved_accuracy = meta.score;
    figures.best_saved_step = meta.step;
  } else if (files.exists(folder / kBestLink)) {
    const auto scored = CheckpointDirectory(files, folder).best_first();
    if (scored.empty()) return;
    figures.best_saved_accuracy = scored.front().score;
    figures.best_saved_step = scored.front().step;
  }
} catch (const Error&) {
}

/// How to_line begins the line of a training step.
constexpr std::string_view kTrain = R"({"event":"train","time":)";

/// Reads a number; null is NaN. Within a JSON string a quote follows a backslash, so no string can hold `"loss":`, and
/// a training step has no nested objects.
template <class Number>
bool read(std::string_view line, std::string_view member, Number& number) {
  const std::size_t at = line.find(member);
  if (at == line.npos) return false;
  const std::string_view text = line.substr(at + member.size());
  if constexpr (std::numeric_limits<Number>::has_quiet_NaN)
    if (text.starts_with("null")) {
      number = std::numeric_limits<Number>::quiet_NaN();
      return true;
    }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return false;  // "inf" is not JSON
  return error == std::errc() && end != text.data() + text.size() && (*end == ',' || *end == '}');
}

/// A folder that cannot be read may be a run: whoever opens it reports why.
bool may_be_run(const fs::path& path) try { return is_run(path); } catch (const EnvironmentError&) {
  return true;
}

fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

}  // namespace

std::optional<Summary> finished_summary(const Run& run) { return Summary::from_json(summary_text(run.path)); }

const RunHeader& Run::header() const {
  static const RunHeader kNone;
  return history.headers.empty() ? kNone : history.headers.back().record;
}

bool is_run(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(metrics_of(path), ignored) || state_of(path) == RunDirState::run;
}

fs::path find_run(const fs::path& named) {
  std::error_code ignored;
  const fs::path path = without_slash(named);
  if (fs::is_regular_file(path, ignored) && path.filename() == metrics_of("").filename())
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(path, ignored) && is_run(path)) return path;
  const fs::path kept = fs::path(kRunsFolder) / path;
  if (!named.empty() && path.is_relative() && fs::is_directory(kept, ignored) && is_run(kept)) return kept;
  throw UsageError(fmt::format("{} {}; name a run directory, or a run that gradring runs ls shows{}",
                               named.empty() ? "''" : named.string(),
                               fs::exists(path, ignored) ? "is not a run directory: it holds no metrics.jsonl, "
                                                           "config.resolved.toml or checkpoint"
                                                         : "does not exist",
                               did_you_mean_run(path)));
}

std::optional<TimedEvent> skim_line(std::string_view line, std::string& problem) {
  if (!line.starts_with(kTrain) || !line.ends_with('}')) return from_line(line, problem);
  double time = 0, seconds = 0;
  StepRecord step;
  const bool is_complete = read(line, R"("time":)", time) && read(line, R"("step":)", step.step) &&
                           read(line, R"("epoch":)", step.epoch) && read(line, R"("loss":)", step.loss) &&
                           read(line, R"("samples":)", step.samples) && read(line, R"("seconds":)", seconds);
  const bool is_within = time >= 0 && time <= kMostTime && std::abs(seconds) <= kMostSeconds &&
                         std::ranges::all_of(std::array{step.step, step.epoch, step.samples},
                                             [](std::int64_t count) { return count >= 0 && count <= kMostCount; });
  if (!is_complete || !is_within) return from_line(line, problem);
  step.duration = std::chrono::duration<double>(seconds);
  return TimedEvent{.time = time, .event = step};
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Run open_run(const fs::path& named, double now, LineReader reader) {
  Run run{.path = find_run(named)};
  std::error_code ignored;
  if (fs::exists(metrics_of(run.path), ignored)) run.history = read_history(metrics_of(run.path), reader);
  update(run, now);
  return run;
}

const char* selecting_split(const RunHistory& history) {
  return history.sums.validation.best ? kValidationSplit : kTestSplit;
}

void update(Run& run, double now) {
  State state = find_state(run, now);
  run.state = state.state;
  run.reason = std::move(state.reason);
  run.figures = figures_of(run.history);
  add_best_checkpoint(run.path, run.figures);
}

std::vector<fs::path> runs_in(const fs::path& folder) try {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw UsageError(fmt::format("{} {}; name a folder of run directories", folder.string(),
                                 fs::exists(folder, ignored) ? "is not a folder" : "does not exist"));
  std::vector<fs::path> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory(ignored) && may_be_run(entry.path())) runs.push_back(entry.path());
  std::ranges::sort(runs);
  return runs;
} catch (const fs::filesystem_error& error) {
  throw EnvironmentError(fmt::format("cannot read {}: {}", folder.string(), error.code().message()));
}

}  // namespace gradring::train
