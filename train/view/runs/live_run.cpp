// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <variant>

#include "train/core/setup/run_directory.h"
#include "train/view/runs/rank_means.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// A rank is silent after this many steps, and at least so many seconds.
constexpr double kSilentSteps = 10;
constexpr double kSilentSeconds = 10;
/// Steps over which the pace is measured.
constexpr std::size_t kPaceSteps = 200;
static_assert(kPaceSteps <= LiveRun::kKeptEvents);
/// `ranks` events over which a rank's times are averaged.
constexpr std::size_t kRankEvents = 5;

/// The 3 of logs/rank_3.log.
std::optional<std::size_t> rank_of_log(const fs::path& path) {
  constexpr std::string_view kHead = "rank_", kTail = ".log";
  const std::string name = path.filename();
  if (!name.starts_with(kHead) || !name.ends_with(kTail) || name.size() < kHead.size() + kTail.size())
    return std::nullopt;
  const std::string_view digits =
      std::string_view(name).substr(kHead.size(), name.size() - kHead.size() - kTail.size());
  std::size_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool is_log = error == std::errc() && end == digits.data() + digits.size() && fmt::to_string(rank) == digits;
  return is_log ? std::optional(rank) : std::nullopt;
}

constexpr std::string_view kRankBegins = "  rank ";
constexpr std::string_view kTrainingEnded = "  training ended: ";
constexpr std::string_view kStoppedByRequest = "stopped by request";

/// Removes old events, many at once.
template <class Event>
void forget_old(std::vector<Event>& events, std::size_t kept = LiveRun::kKeptEvents) {
  if (events.size() < 2 * kept) return;
  events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(kept));
}

}  // namespace

std::string_view name_of(RankState state) {
  constexpr std::string_view kNames[] = {"starting", "training", "evaluating", "slow", "stalled",
                                         "finished", "stopped",  "failed",     "lost"};
  return kNames[static_cast<std::size_t>(state)];
}

void RankLogReader::poll() {
  const auto use = [this](std::string_view line) { read(line); };
  if (file_.poll(use) != FollowedFile::Change::changed) return;
  loss_.reset();
  end_.clear();
  file_.poll(use);
}

void RankLogReader::read(std::string_view line) {
  constexpr std::string_view kLoss = "Loss: ";
  if (const auto at = line.find(kTrainingEnded); at != line.npos) end_ = line.substr(at + kTrainingEnded.size());
  if (const auto at = line.find(kRankBegins); at != line.npos && at < 24) end_.clear();  // another start
  if (const auto at = line.find(kLoss); at != line.npos) {
    const std::string text(line.substr(at + kLoss.size()));
    char* end = nullptr;
    const double loss = std::strtod(text.c_str(), &end);
    if (end != text.c_str()) loss_ = loss;
  }
}

LiveRun::LiveRun(const std::filesystem::path& named) : run_{.path = find_run(named)}, metrics_(metrics_of(run_.path)) {}

void LiveRun::poll(double now) {
  std::string problem;  // runs show and the report name lines that are no event
  const auto use = [&](std::string_view line) {
    if (const auto event = skim_line(line, problem)) add(*event);
  };
  if (metrics_.poll(use) == FollowedFile::Change::changed) {
    run_.history = {};
    losses_ = {};
    metrics_.poll(use);
  }
  update(run_, now);
  poll_logs();
}

/// Logs that there are: a header may promise more ranks than that.
void LiveRun::poll_logs() {
  rank_count_ = run_.history.headers.empty() ? 1 : static_cast<std::size_t>(run_.header().ranks);
  std::error_code ignored;  // a folder that cannot be read has no logs
  for (const auto& entry : fs::directory_iterator(log_file(run_.path, 0).parent_path(), ignored))
    if (const auto rank = rank_of_log(entry.path())) logs_.try_emplace(*rank, entry.path());
  logs_.erase(logs_.lower_bound(rank_count_), logs_.end());
  for (auto& [rank, log] : logs_) log.poll();
}

void LiveRun::add(const TimedEvent& event) {
  add_event(run_.history, event);
  if (const auto* step = std::get_if<StepRecord>(&event.event)) losses_.add(step->loss);
  RunHistory& history = run_.history;
  forget_old(history.headers), forget_old(history.steps), forget_old(history.evals);
  forget_old(history.ranks, kRankEvents);  // large where ranks are many
  forget_old(history.restarts), forget_old(history.checkpoints), forget_old(history.faults), forget_old(history.ends);
}

std::vector<RankRow> LiveRun::ranks(double now) const {
  const RunHistory& history = run_.history;
  const double start = history.headers.empty() ? 0 : history.headers.back().time;
  std::size_t first = history.ranks.size() - std::min(history.ranks.size(), kRankEvents);
  while (first < history.ranks.size() && history.ranks[first].time < start) ++first;
  const auto newest = rank_means(std::span(history.ranks).subspan(first));
  const auto straggler = straggler_of(newest);
  std::vector<RankRow> rows;
  for (std::size_t rank = 0; rank < rank_count_; ++rank) {
    RankRow row{.rank = rank, .state = state_of(rank, now)};
    if (const RankLogReader* log = log_of(rank)) {
      row.loss = log->loss();
      if (row.state == RankState::failed) row.note = log->end();
    }
    if (rank < newest.size()) {
      const RankMeans& means = newest[rank];
      row.step = history.ranks.back().record.step;
      row.memory = means.memory;
      if (means.seconds > 0) {
        row.steps_per_second = 1 / means.seconds;
        row.data_wait = means.data_wait / means.seconds;
        row.communication = means.exposed_communication / means.seconds;
      }
    }
    if (rank == 0) row.step = run_.figures.steps;
    if (rank == 0 && has_stepped()) row.loss = history.steps.back().record.loss;
    if (straggler && straggler->rank == rank && row.note.empty()) {
      if (row.state == RankState::training) row.state = RankState::slow;
      row.note = fmt::format("+{:.1f} ms a step", 1e3 * straggler->delay);
    }
    if (const auto& faults = history.faults; !faults.empty() &&
                                             static_cast<std::size_t>(faults.back().record.rank) == rank &&
                                             faults.back().record.step + 1 >= run_.figures.steps)
      row.note = fmt::format("injected {} at step {}", faults.back().record.kind, faults.back().record.step);
    rows.push_back(std::move(row));
  }
  return rows;
}

bool LiveRun::has_stepped() const {
  const RunHistory& history = run_.history;
  return !history.steps.empty() &&
         (history.headers.empty() || history.steps.back().time >= history.headers.back().time);
}

bool LiveRun::is_evaluating() const {
  const std::int64_t steps = run_.header().steps_per_epoch;
  if (run_.state != RunState::running || !has_stepped() || steps <= 0) return false;
  const StepRecord& last = run_.history.steps.back().record;
  const auto& evals = run_.history.evals;
  const bool is_last_of_epoch = last.step % steps == 0 && last.step / steps == last.epoch;
  return is_last_of_epoch && (evals.empty() || evals.back().record.step < last.step);
}

const RankLogReader* LiveRun::log_of(std::size_t rank) const {
  const auto found = logs_.find(rank);
  return found == logs_.end() ? nullptr : &found->second;
}

bool LiveRun::is_silent(std::size_t rank, double now) const {
  const RankLogReader* const log = log_of(rank);
  const RunHistory& history = run_.history;
  const double step = history.steps.empty() ? 0 : history.steps.back().record.duration.count();
  const double newest = std::max({history.last_time, metrics_.written_at(), log ? log->written_at() : 0});
  return now - newest > std::max(kSilentSeconds, kSilentSteps * step);
}

RankState LiveRun::state_of(std::size_t rank, double now) const {
  const RankLogReader* const log = log_of(rank);
  const std::string end = log ? log->end() : "";
  if (!end.empty()) return end.starts_with(kStoppedByRequest) ? RankState::stopped : RankState::failed;
  switch (run_.state) {
    case RunState::finished: return RankState::finished;
    case RunState::stopped: return RankState::stopped;
    case RunState::failed: return RankState::lost;
    case RunState::running: break;
  }
  if (is_evaluating()) return RankState::evaluating;
  if (is_silent(rank, now)) return RankState::stalled;
  return has_stepped() ? RankState::training : RankState::starting;
}

std::optional<double> LiveRun::pace() const {
  if (!has_stepped()) return std::nullopt;
  const auto& steps = run_.history.steps;
  const double start = run_.history.headers.empty() ? 0 : run_.history.headers.back().time;
  std::size_t first = steps.size() - std::min(steps.size(), kPaceSteps);
  while (first < steps.size() && steps[first].time < start) ++first;
  if (first + 1 >= steps.size()) return std::nullopt;
  const double seconds = steps.back().time - steps[first].time;
  if (!(seconds > 0)) return std::nullopt;
  return static_cast<double>(steps.size() - 1 - first) / seconds;
}

std::optional<double> LiveRun::time_left() const {
  const auto rate = pace();
  if (run_.state != RunState::running || !rate || run_.figures.total_steps <= 0) return std::nullopt;
  return static_cast<double>(run_.figures.total_steps - run_.figures.steps) / *rate;
}

void MeanCurve::add(double value) {
  if (sums_.empty() || values_of_last_ == values_of_each_) {
    if (sums_.size() == kMostMeans) halve();
    sums_.emplace_back();
    values_of_last_ = 0;
  }
  ++values_of_last_;
  if (!std::isfinite(value)) return;
  sums_.back().sum += value;
  ++sums_.back().finite;
}

/// Called when the last sum is full, too.
void MeanCurve::halve() {
  for (std::size_t i = 0; i < sums_.size() / 2; ++i)
    sums_[i] = {.sum = sums_[2 * i].sum + sums_[2 * i + 1].sum,
                .finite = sums_[2 * i].finite + sums_[2 * i + 1].finite};
  sums_.resize(sums_.size() / 2);
  values_of_each_ *= 2;
}

std::vector<double> MeanCurve::means() const {
  std::vector<double> means;
  for (const auto& [sum, finite] : sums_)
    means.push_back(finite > 0 ? sum / static_cast<double>(finite) : std::numeric_limits<double>::quiet_NaN());
  return means;
}

}  // namespace gradring::train
