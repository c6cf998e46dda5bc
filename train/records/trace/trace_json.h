// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/process_group.h"
#include "kernels/runtime/trace_track.h"

namespace gradring::train {

/// How a rank's clock relates to rank 0's: time there = time here + offset, to within the accuracy.
struct RankClock {
  std::int64_t offset_ns = 0;
  std::int64_t accuracy_ns = 0;  ///< 0: the ranks read the same clock
  bool operator==(const RankClock&) const = default;
};

/// What distinguishes the clock that this process reads: the kernel's boot id; empty if it is unknown.
std::string id_of_this_clock();

/// Compares the clocks of all ranks. Ranks with rank 0's `clock_id` have its clock. The others bound their offset from
/// both sides, by exchanges of times over the host channel: a time that was sent is before the one at which it had
/// arrived. Collective.
///
/// Numerics  the true offset is within the accuracy of the result, unless the clocks drift meanwhile.
/// Cost      32 exchanges if a clock differs, else one.
RankClock compare_clocks(comm::ProcessGroup& group, const std::string& clock_id,
                         const std::function<std::int64_t()>& now);

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
