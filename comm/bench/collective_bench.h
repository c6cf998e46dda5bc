// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/dtype.h"

namespace gradring::comm::bench {

/// Unmeasured and measured iterations.
struct Repetitions {
  int warmups = 5;
  int iterations = 20;
  /// Whether every rank rewrites its elements before each iteration (unmeasured), as backward does. If not, the sums of
  /// the iteration before may still be in the cache.
  bool fresh = false;
};

/// The array to reduce.
struct Payload {
  std::size_t elements = 0;
  kernels::DType dtype = kernels::DType::f32;

  std::size_t bytes() const { return elements * size_of(dtype); }
};

/// Measures and checks one collective. All ranks make the same calls in the same order.
///
/// Threads   one thread at a time.
/// Errors    as ProcessGroup and Stream.
class CollectiveBench {
 public:
  virtual ~CollectiveBench() = default;

  /// The wrong elements of one call, counted over all ranks: every rank checks every element. Nothing if the collective
  /// has no result.
  virtual std::optional<std::size_t> wrong_elements(const Payload& payload) = 0;
  /// Seconds of each iteration, after one barrier: the slowest rank's time. Equal on all ranks.
  virtual std::vector<double> seconds(const Payload& payload, const Repetitions& repetitions) = 0;
};

/// Seconds of each call of `collective`, before which `prepare` runs unmeasured: CollectiveBench::seconds.
std::vector<double> seconds_of_calls(ProcessGroup& group, const Repetitions& repetitions,
                                     const std::function<void()>& prepare, const std::function<void()>& collective);

/// For each iteration the largest of all ranks' times; equal on all ranks.
std::vector<double> slowest_of_all_ranks(ProcessGroup& group, std::span<const double> mine);

}  // namespace gradring::comm::bench
