// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "data/files/byte_source.h"
#include "kernels/base/printable.h"
#include "train/records/metrics/median.h"
#include "train/records/trace/step_timeline.h"

namespace gradring::train {
namespace {

/// When a rank arrived at a collective, or at a host synchronization, of all ranks.
struct Arrival {
  const RankStep* rank = nullptr;
  std::int64_t time = 0;
};

const TimedCollective* find(const RankStep& rank, std::int64_t number) {
  const auto found = std::ranges::find(rank.collectives, number, &TimedCollective::number);
  return found == rank.collectives.end() ? nullptr : &*found;
}

std::vector<Arrival> arrivals_at_collective(const StepTimeline& step, std::int64_t number) {
  std::vector<Arrival> all;
  for (const RankStep& rank : step)
    if (const TimedCollective* collective = find(rank, number)) all.push_back({&rank, collective->begin});
  return all;
}

/// At the segment with index `which` among those of category sync.
std::vector<Arrival> arrivals_at_sync(const StepTimeline& step, std::size_t which) {
  std::vector<Arrival> all;
  for (const RankStep& rank : step) {
    std::size_t seen = 0;
    for (const Segment& segment : rank.segments)
      if (segment.category == "sync" && seen++ == which) all.push_back({&rank, segment.begin});
  }
  return all;
}

const Arrival& last_of(const std::vector<Arrival>& arrivals) {
  return *std::ranges::max_element(arrivals, {}, &Arrival::time);
}

class Walk {
 public:
  explicit Walk(const StepTimeline& step) : step_(step) {
    rank_ = &*std::ranges::max_element(step, {}, &RankStep::end);
    time_ = rank_->end;
  }

  std::map<std::string, std::int64_t> run() {
    while (time_ > rank_->begin) {
      const Segment* const segment = segment_before();
      if (!segment) break;
      const std::int64_t before = time_;
      if (segment->category == "wait")
        follow_wait(*segment);
      else if (segment->category == "sync")
        follow_sync(*segment);
      if (time_ == before) go_back_to(segment->begin, segment->category);
    }
    return path_;
  }

 private:
  const Segment* segment_before() const {
    const auto after = std::ranges::lower_bound(rank_->segments, time_, {}, &Segment::begin);
    return after == rank_->segments.begin() ? nullptr : &*std::prev(after);
  }

  void go_back_to(std::int64_t time, const std::string& category) {
    if (time >= time_) return;
    path_[category] += time_ - time;
    time_ = time;
  }

  void follow_sync(const Segment& segment) {
    std::size_t which = 0;
    for (const Segment& each : rank_->segments) which += each.category == "sync" && each.begin < segment.begin;
    const Arrival last = last_of(arrivals_at_sync(step_, which));
    go_back_to(last.time, "sync");
    rank_ = last.rank;
  }

  /// To where the data of the last collective before the end of the wait was ready, on the rank that came last.
  void follow_wait(const Segment& wait) {
    const TimedCollective* collective = nullptr;
    for (const TimedCollective& each : rank_->collectives)
      if (each.begin < time_ && each.end > wait.begin) collective = &each;
    while (collective) {
      const Arrival last = last_of(arrivals_at_collective(step_, collective->number));
      go_back_to(last.time, "communication");
      rank_ = last.rank;
      const TimedCollective* const own = find(*rank_, collective->number);
      const TimedCollective* const before = own == rank_->collectives.data() ? nullptr : own - 1;
      if (!before || before->end <= own->ready) return go_back_to(own->ready, "communication");
      collective = before;  // the communication stream was busy
    }
  }

  const StepTimeline& step_;
  const RankStep* rank_;
  std::int64_t time_;
  std::map<std::string, std::int64_t> path_;
};

/// Sets the straggler's cause.
void find_cause(const StepTimeline& step, StepStraggler& straggler) {
  std::map<std::string, std::vector<std::int64_t>> others;
  std::map<std::string, std::int64_t> own;
  for (const RankStep& each : step) {
    const auto totals = each.totals();
    if (each.rank == straggler.rank) own = totals;
    for (const char* category :
         {"data", "fault", "forward", "backward", "optimizer", "evaluation", "checkpoint", "other"})
      if (each.rank != straggler.rank) others[category].push_back(totals.contains(category) ? totals.at(category) : 0);
  }
  for (const auto& [category, values] : others) {
    const std::int64_t excess = (own.contains(category) ? own.at(category) : 0) - median(values);
    if (excess <= straggler.cause_delay) continue;
    straggler.cause_delay = excess;
    straggler.cause = category;
  }
}

using Json = nlohmann::ordered_json;

constexpr const char* kRow = "{:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10}  {}\n";

double seconds_of(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

/// Critical path and straggler only with `has_one_time`: they compare times of ranks.
StepFigures figures_of(std::int64_t number, const StepTimeline& step, bool has_one_time) {
  StepFigures figures{.step = number};
  const double share = 1.0 / static_cast<double>(step.size());
  for (const RankStep& rank : step) {
    auto totals = rank.totals();
    figures.seconds += share * seconds_of(rank.end - rank.begin);
    figures.compute += share * seconds_of(totals["forward"] + totals["backward"] + totals["optimizer"]);
    figures.communication += share * seconds_of(rank.communication());
    figures.exposed += share * seconds_of(totals["wait"]);
    figures.sync += share * seconds_of(totals["sync"]);
    figures.data += share * seconds_of(totals["data"]);
  }
  if (!has_one_time) return figures;
  for (const auto& [category, ns] : critical_path(step)) figures.critical_path[category] = seconds_of(ns);
  const StepStraggler straggler = straggler_of(step);
  figures.straggler = straggler.rank;
  figures.delay = seconds_of(straggler.delay);
  figures.cause = straggler.cause;
  figures.cause_delay = seconds_of(straggler.cause_delay);
  return figures;
}

StepFigures mean_of(const std::vector<StepFigures>& steps) {
  StepFigures mean;
  const double share = 1.0 / static_cast<double>(steps.size());
  for (const StepFigures& step : steps) {
    for (double StepFigures::*member : {&StepFigures::seconds, &StepFigures::compute, &StepFigures::communication,
                                        &StepFigures::exposed, &StepFigures::sync, &StepFigures::data})
      mean.*member += share * step.*member;
    for (const auto& [category, seconds] : step.critical_path) mean.critical_path[category] += share * seconds;
  }
  return mean;
}

RunStraggler straggler_of(const std::vector<StepFigures>& steps) {
  std::map<int, std::vector<const StepFigures*>> by_rank;
  for (const StepFigures& step : steps)
    if (step.straggler >= 0) by_rank[step.straggler].push_back(&step);
  RunStraggler worst;
  for (const auto& [rank, late] : by_rank) {
    RunStraggler each{.rank = rank, .steps = std::ssize(late)};
    std::vector<double> delays;
    std::map<std::string, std::vector<double>> causes;
    for (const StepFigures* step : late) {
      delays.push_back(step->delay);
      each.total_delay += step->delay;
      causes[step->cause].push_back(step->cause_delay);
    }
    each.median_delay = median(delays);
    const auto cause = std::ranges::max_element(causes, {}, [](const auto& of) { return of.second.size(); });
    each.cause = cause->first;
    each.median_cause_delay = median(cause->second);
    if (worst.rank < 0 || each.total_delay > worst.total_delay) worst = each;
  }
  return worst;
}

std::string millis(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }

/// The longest parts of a path: "backward 12.1, communication 3.0".
std::string path_text(const std::map<std::string, double>& path) {
  constexpr std::size_t kParts = 2;
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [category, seconds] : path) parts.emplace_back(-seconds, category);
  std::ranges::sort(parts);
  parts.resize(std::min(parts.size(), kParts));
  std::vector<std::string> texts;
  for (const auto& [seconds, category] : parts) texts.push_back(fmt::format("{} {:.1f}", category, -1e3 * seconds));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string row(const std::string& name, const StepFigures& step) {
  const auto overlap = step.overlap();
  const std::string straggler = step.straggler < 0 ? "-" : fmt::format("{} +{}", step.straggler, millis(step.delay));
  return fmt::format(fmt::runtime(kRow), name, millis(step.seconds), millis(step.compute), millis(step.communication),
                     millis(step.exposed), overlap ? fmt::format("{:.0f} %", 100 * *overlap) : "-", straggler,
                     path_text(step.critical_path));
}

Json to_json(const StepFigures& step) {
  Json json{{"seconds", step.seconds},
            {"compute", step.compute},
            {"communication", step.communication},
            {"exposed_communication", step.exposed},
            {"sync", step.sync},
            {"data_wait", step.data}};
  json["overlap"] = step.overlap() ? Json(*step.overlap()) : Json();
  json["critical_path"] = step.critical_path;
  return json;
}

}  // namespace

std::optional<double> StepFigures::overlap() const {
  if (communication <= 0) return std::nullopt;
  return std::max(0.0, 1 - exposed / communication);
}

TraceSummary summarize(const TraceFile& file, const std::string& path) {
  TraceSummary summary{file, {}, {}, {}};
  for (const auto& [number, step] : timelines_of(file))
    summary.steps.push_back(figures_of(number, step, file.has_one_time));
  if (summary.steps.empty())
    throw data::DataError(path, "has no complete step", "trace more steps with gradring train --trace-steps A:B");
  summary.mean = mean_of(summary.steps);
  summary.straggler = straggler_of(summary.steps);
  return summary;
}

std::string to_text(const TraceSummary& summary) {
  std::string text = fmt::format(fmt::runtime(kRow), "step", "ms", "compute", "comm.", "exposed", "overlap",
                                 "straggler", "critical path (ms)");
  for (const StepFigures& step : summary.steps) text += row(std::to_string(step.step), step);
  text += row("mean", summary.mean);
  const RunStraggler& straggler = summary.straggler;
  if (straggler.rank >= 0)
    text += fmt::format("\nStraggler: rank {} in {} of {} steps; the others wait {} ms for it (median){}\n",
                        straggler.rank, straggler.steps, summary.steps.size(), millis(straggler.median_delay),
                        straggler.cause.empty() ? ""
                                                : fmt::format(", {} ms of it because of {}",
                                                              millis(straggler.median_cause_delay), straggler.cause));
  if (std::ssize(summary.ranks) < summary.world_size)
    text += fmt::format("Only ranks {} of {} are in the trace: the run failed; name the other ranks' files, too\n",
                        fmt::join(summary.ranks, ", "), summary.world_size);
  if (!summary.has_one_time)
    text +=
        "The ranks ran on different machines, whose clocks were not compared because the run failed: there is no "
        "critical path and no straggler\n";
  if (summary.dropped > 0) text += fmt::format("{} events are missing: trace fewer steps\n", summary.dropped);
  for (const std::string& note : summary.notes) text += fmt::format("Note of {}\n", note);
  if (summary.accuracy_us > 0)
    text += fmt::format("Clocks of different machines agree to {:.1f} us\n", summary.accuracy_us);
  return text;
}

std::string to_json(const TraceSummary& summary) {
  Json json{{"ranks", summary.ranks},
            {"world_size", summary.world_size},
            {"dropped_events", summary.dropped},
            {"clock_accuracy_us", summary.has_one_time ? Json(summary.accuracy_us) : Json()},
            {"notes", summary.notes}};
  json["steps"] = Json::array();
  for (const StepFigures& step : summary.steps) {
    Json each{{"step", step.step}};
    each.update(to_json(step));
    if (step.straggler >= 0)
      each["straggler"] = {
          {"rank", step.straggler}, {"delay", step.delay}, {"cause", step.cause}, {"cause_delay", step.cause_delay}};
    json["steps"].push_back(std::move(each));
  }
  json["mean"] = to_json(summary.mean);
  const RunStraggler& straggler = summary.straggler;
  if (straggler.rank >= 0)
    json["straggler"] = {{"rank", straggler.rank},
                         {"steps", straggler.steps},
                         {"median_delay", straggler.median_delay},
                         {"total_delay", straggler.total_delay},
                         {"cause", straggler.cause},
                         {"median_cause_delay", straggler.median_cause_delay}};
  return printable_json(json.dump(2));
}

std::map<std::string, std::int64_t> critical_path(const StepTimeline& step) { return Walk(step).run(); }

StepStraggler straggler_of(const StepTimeline& step) {
  if (step.size() < 2) return {};
  std::map<int, std::int64_t> late;
  const auto count = [&](const std::vector<Arrival>& arrivals) {
    if (arrivals.size() < step.size()) return;
    const Arrival last = last_of(arrivals);
    std::vector<std::int64_t> others;
    for (const Arrival& each : arrivals)
      if (each.rank != last.rank) others.push_back(each.time);
    late[last.rank->rank] += last.time - median(std::move(others));
  };
  for (const TimedCollective& collective : step.front().collectives)
    count(arrivals_at_collective(step, collective.number));
  for (std::size_t which = 0;; ++which) {
    const std::vector<Arrival> arrivals = arrivals_at_sync(step, which);
    if (arrivals.empty()) break;
    count(arrivals);
  }
  if (late.empty()) return {};
  const auto worst = std::ranges::max_element(late, {}, [](const auto& each) { return each.second; });
  StepStraggler straggler{.rank = worst->first, .delay = worst->second, .cause = {}};
  find_cause(step, straggler);
  return straggler;
}

}  // namespace gradring::train
