// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/trace_track.h"
#include "train/records/metrics/named_file.h"

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

/// Compresses a text that comes in parts of any size, and passes the compressed bytes on in parts.
///
/// Errors    std::bad_alloc; what `sink` throws.
/// Cost      memory for 64 KiB, and what zlib needs, about 256 KiB.
/// Source    RFC 1952 (gzip), by zlib.
class GzipStream {
 public:
  using Sink = std::function<void(std::string_view bytes)>;

  explicit GzipStream(Sink sink);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void write(std::string_view part);
  /// Passes on the rest.
  void finish();

 private:
  void deflate(int flush);

  Sink sink_;
  z_stream stream_{};
  std::array<char, 64 * 1024> out_{};
};

/// How a trace file begins, decompressed, which tells it from those of other programs.
inline constexpr std::string_view kTraceBegin = "{\"generator\":\"gradring\",";
inline bool is_trace(std::string_view head) { return head.starts_with(kTraceBegin); }

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

/// Writes a trace file rank by rank; compressed if the path ends in .gz. The file appears with finish().
///
/// Threads   one.
/// Errors    EnvironmentError with path and reason.
/// Cost      keeps no events in memory.
class TraceWriter {
 public:
  explicit TraceWriter(const FileAt& file);

  void add(const RankPart& part);
  void finish(const TraceMetadata& metadata);

 private:
  void write(std::string_view text);

  NamedFile file_;
  std::optional<GzipStream> gzip_;
  std::string clocks_;  // members of metadata.clocks
};

/// "a.json.gz" of rank 2 is "a.rank2.json.gz".
std::filesystem::path part_of(const std::filesystem::path& path, int rank);

}  // namespace gradring::train
