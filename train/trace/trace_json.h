// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/runtime/trace_track.h"
#include "train/trace/rank_clock.h"

namespace gradring::train {

/// A rank's part of a trace file, as text.
struct RankPart {
  std::string events;  ///< of the member traceEvents, separated by commas
  std::string clock;   ///< its entry in metadata.clocks
};

/// A process "rank N" with a thread for each track. Flow events lead from where a bucket was ready (on the first track)
/// to its sum.
///
/// Source    "Trace Event Format", Google, 2016: phases X, M, s and f; times in microseconds.
RankPart render_rank(int rank, std::span<const kernels::TraceTrack* const> tracks, const RankClock& clock);

/// The member metadata of a trace file.
struct TraceMetadata {
  std::string version{};  ///< of gradring
  std::vector<std::string> command{};
  int ranks = 1;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<int> missing_ranks{};  ///< whose events could not be collected
  std::string reason{};              ///< why
};

/// Writes a trace file; compressed if the path ends in .gz.
///
/// Errors    EnvironmentError with path and reason.
void write_trace(const std::filesystem::path& path, std::span<const RankPart> parts, const TraceMetadata& metadata);

/// "a.json.gz" of rank 2 is "a.rank2.json.gz".
std::filesystem::path part_of(const std::filesystem::path& path, int rank);

/// The category of an event as files name it.
std::string_view name_of(kernels::TraceCategory category);

}  // namespace gradring::train
