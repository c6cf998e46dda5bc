// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "kernels/runtime/cuda/cupti_api.h"

namespace gradring::tests {

/// What a GPU would have executed: `begin` and `end` are fractions of the time from cuptiActivityEnable to the flush.
struct FakeActivity {
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  const char* name = "";  ///< of a kernel
  std::uint32_t stream = 7;
  double begin = 0;
  double end = 0;
  std::uint64_t bytes = 0;
  std::uint32_t graph = 0;
};

/// A libcupti.so.13 without a GPU: a flush delivers `activities` as the records that CUPTI 13 writes, by a clock of its
/// own. It does so for every second recording: in the first one, by which a trace makes CUPTI ready, the GPU does
/// nothing. A test opens the library as the program does, and finds this by the symbol fake_cupti.
///
/// The environment sets `version` (GRADRING_FAKE_CUPTI_VERSION) and `dropped` (GRADRING_FAKE_CUPTI_DROPPED) of another
/// process.
struct FakeCupti {
  std::uint32_t version = CUPTI_API_VERSION;
  std::int64_t clock_ahead = 1'000'000'000'000'000'000;  ///< ns before the host's clock
  std::int64_t clock_jump = 0;                           ///< ns by which the clock jumps at the first flush, or disable
  std::int64_t misplaced_by = 0;                         ///< ns that are added to the times of records
  bool forgets_times = false;
  std::size_t dropped = 0;  ///< reported once
  bool keeps_first_buffer = false;
  std::size_t records_of_buffer = 1000;
  CUptiResult enable_memset = CUPTI_SUCCESS;  ///< the result of cuptiActivityEnable(MEMSET)
  std::vector<FakeActivity> activities;

  std::set<CUpti_ActivityKind> enabled{};
  std::int64_t began = 0;  ///< by the host's clock
  int recordings = 0;      ///< not delivered yet
  int flushes = 0;         ///< with a recording
  std::int64_t ended = 0;
};

inline constexpr const char* kFakeCupti = "fake_cupti";
using FakeCuptiEntry = FakeCupti* (*)();

}  // namespace gradring::tests
