// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/runtime/device_trace.h"

namespace gradring::kernels {

/// A kernel, copy or clearing that a GPU executed, by the clock of CUPTI.
struct GpuActivity {
  TraceCategory category = TraceCategory::kernel;
  const char* name = "";    ///< as the compiler mangled it
  std::uint64_t begin = 0;  ///< ns; 0 if unknown, as the end
  std::uint64_t end = 0;
  std::uint32_t device = 0;  ///< CUDA's index in this process
  std::uint32_t stream = 0;  ///< CUPTI's number
  std::array<std::int64_t, 4> numbers{};
};

/// Activities, and how many were lost on the way.
struct GpuRecords {
  std::vector<GpuActivity> activities{};
  std::size_t dropped = 0;             ///< by CUPTI, which had no room
  std::size_t without_room = 0;        ///< by us
  std::size_t lost_buffers = 0;        ///< CUPTI wrote into them and kept them
  std::size_t unreadable_buffers = 0;  ///< from a record on
};

/// Both clocks read at one time: CUPTI's between two readings of the host's.
struct ClockPair {
  std::int64_t host = 0;  ///< ns of the steady clock, the middle of both readings
  std::uint64_t device = 0;
  std::int64_t accuracy = 0;  ///< ns, half the distance of both readings
};

/// A track for each stream, by the host's clock: times are interpolated between the pairs of the first and the last
/// moment of the trace. Activities of one stream that overlap, as branches of a graph do, are spread over several
/// tracks. Activities whose times are unknown, or lie outside of the trace by more than 1 ms, are left out. Notes name
/// what was left out or lost, and a clock that ran differently by more than 0.1 %.
DeviceActivities to_tracks(const GpuRecords& records, const ClockPair& first, const ClockPair& last);

}  // namespace gradring::kernels
