// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/critical_path.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "train/records/metrics/median.h"

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

}  // namespace

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
