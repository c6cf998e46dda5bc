// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/runtime/trace_track.h"
#include "train/records/trace/rank_clock.h"

namespace gradring::train {

/// A rank's part of a trace file, as text.
struct RankPart {
  std::string events;  ///< of the member traceEvents, separated by commas
  std::string clock;   ///< its entry in metadata.clocks
};

/// A process "rank N" with a thread for each track. Flow events lead from where a bucket was ready (on the first track)
/// to its sum. Without `clock`, which is unknown in a run that failed, times are those of this rank's machine.
///
/// Source    "Trace Event Format", Google, 2016: phases X, M, s and f; times in microseconds.
RankPart render_rank(int rank, std::span<const kernels::TraceTrack* const> tracks,
                     const std::optional<RankClock>& clock);

}  // namespace gradring::train
