// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/records/trace/trace_file.h"

namespace gradring::train {

/// A part of a rank's step: what its trainer's thread did from `begin` to `end` (ns).
struct Segment {
  std::string category;  ///< of the outermost slice within the step, but always "wait" in waits; "other" between slices
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A collective of a step. `ready`: when its data was complete, so that it began as soon as those before had ended.
struct TimedCollective {
  std::int64_t number = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t ready = 0;
};

/// One rank in one step.
struct RankStep {
  int rank = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<Segment> segments;  ///< from begin to end, without gaps
  std::vector<TimedCollective> collectives;

  /// Nanoseconds of each category.
  std::map<std::string, std::int64_t> totals() const;
  std::int64_t communication() const;  ///< ns in collectives
};

/// Every rank that has the step, by rank.
using StepTimeline = std::vector<RankStep>;

/// The steps of a trace by number. A step that was repeated, because the training went back, counts with its last time.
std::map<std::int64_t, StepTimeline> timelines_of(const TraceFile& file);

}  // namespace gradring::train
