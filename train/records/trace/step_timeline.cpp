// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/step_timeline.h"

#include <algorithm>
#include <span>

namespace gradring::train {
namespace {

using Slices = std::span<const TraceSlice>;

/// The slices that begin in [begin, end), of one rank.
Slices between(Slices of_rank, std::int64_t begin, std::int64_t end) {
  const auto first = std::ranges::lower_bound(of_rank, begin, {}, &TraceSlice::begin);
  const auto last = std::ranges::lower_bound(first, of_rank.end(), end, {}, &TraceSlice::begin);
  return {first, last};
}

/// Appends a segment, and what is between it and the one before.
void append(RankStep& step, const std::string& category, std::int64_t begin, std::int64_t end) {
  const std::int64_t at = step.segments.empty() ? step.begin : step.segments.back().end;
  begin = std::max(begin, at);
  end = std::min(end, step.end);
  if (begin > at) step.segments.push_back({"other", at, begin});
  if (end > begin) step.segments.push_back({category, begin, end});
}

/// Outermost slices, cut where the thread waited for other ranks.
void cut_segments(RankStep& step, Slices slices, int track) {
  const TraceSlice* outer = nullptr;
  std::int64_t at = step.begin;  // what is before it is in segments
  const auto close = [&] {
    if (outer) append(step, outer->category, at, outer->end);
    outer = nullptr;
  };
  for (const TraceSlice& slice : slices) {
    if (slice.track != track || slice.category == "step") continue;
    if (outer && slice.begin >= outer->end) close();
    if (slice.category == "wait") {
      if (outer) append(step, outer->category, at, slice.begin);
      append(step, slice.category, slice.begin, slice.end);
      at = slice.end;
    } else if (!outer) {
      outer = &slice;
      at = slice.begin;
    }
  }
  close();
  append(step, "other", step.end, step.end);
}

std::vector<TimedCollective> collectives_of(Slices slices) {
  std::vector<TimedCollective> all;
  for (const TraceSlice& slice : slices) {
    if (slice.category != "collective") continue;
    const auto contains = [&](const TraceSlice& bucket) {
      return bucket.category == "bucket" && bucket.begin <= slice.begin && slice.end <= bucket.end;
    };
    const auto bucket = std::ranges::find_if(slices, contains);
    all.push_back({.number = slice.collective,
                   .begin = slice.begin,
                   .end = slice.end,
                   .ready = bucket == slices.end() ? slice.begin : std::min(bucket->ready, slice.begin)});
  }
  return all;
}

}  // namespace

std::map<std::string, std::int64_t> RankStep::totals() const {
  std::map<std::string, std::int64_t> totals;
  for (const Segment& segment : segments) totals[segment.category] += segment.end - segment.begin;
  return totals;
}

std::int64_t RankStep::communication() const {
  std::int64_t sum = 0;
  for (const TimedCollective& collective : collectives) sum += collective.end - collective.begin;
  return sum;
}

std::map<std::int64_t, StepTimeline> timelines_of(const TraceFile& file) {
  std::map<std::int64_t, std::map<int, RankStep>> steps;
  for (const int rank : file.ranks) {
    const auto [first, last] = std::ranges::equal_range(file.slices, rank, {}, &TraceSlice::rank);
    const Slices of_rank(first, last);
    for (const TraceSlice& slice : of_rank) {
      if (slice.category != "step") continue;
      RankStep step{.rank = rank, .begin = slice.begin, .end = slice.end, .segments = {}, .collectives = {}};
      const Slices within = between(of_rank, slice.begin, slice.end);
      cut_segments(step, within, slice.track);
      step.collectives = collectives_of(within);
      steps[slice.step][rank] = std::move(step);
    }
  }
  std::map<std::int64_t, StepTimeline> timelines;
  for (auto& [number, by_rank] : steps)
    for (auto& [rank, step] : by_rank) timelines[number].push_back(std::move(step));
  return timelines;
}

}  // namespace gradring::train
