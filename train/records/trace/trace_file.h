// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gradring::train {

/// A slice of a trace file. Times in nanoseconds.
struct TraceSlice {
  int rank = 0;
  int track = 0;         ///< number of the thread
  std::string category;  ///< as kernels::TraceCategory
  std::string name;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t step = -1;        ///< of the run; of category step only
  std::int64_t collective = -1;  ///< sequence number; of category collective only
  std::int64_t bytes = 0;
  std::int64_t ready = 0;  ///< of a bucket
};

/// What a trace says about itself.
struct TraceFacts {
  std::vector<int> ranks;  ///< whose events there are, ascending
  int world_size = 1;
  std::int64_t dropped = 0;  ///< events for which there was no room
  double accuracy_us = 0;    ///< of the worst clock
  /// False: the run failed before clocks were compared, and its ranks read different ones.
  bool has_one_time = true;
  std::vector<std::string> notes{};  ///< about what is missing: "rank 0: ..."
};

struct TraceFile : TraceFacts {
  std::vector<TraceSlice> slices;  ///< by rank and begin; at one begin the longest first
};

/// Reads files of one run that --trace wrote, compressed or not: one, or the parts of a run that failed.
///
/// Errors    data::DataError if a file is no such trace; std::system_error if it cannot be read.
/// Cost      memory for the slices, not for the text.
TraceFile read_trace(std::span<const std::filesystem::path> paths);

}  // namespace gradring::train
