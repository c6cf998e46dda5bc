// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/stream.h"

namespace gradring::comm::bench {

/// How often something is done unmeasured, and how often measured.
struct Repetitions {
  int warmups = 5;
  int iterations = 20;
  /// Whether every rank writes all its elements anew before each iteration, unmeasured, as backward does. If not, what
  /// a rank summed before may still lie in its cache.
  bool fresh = false;
};

/// What is reduced.
struct Payload {
  std::size_t elements = 0;
  kernels::DType dtype = kernels::DType::f32;

  std::size_t bytes() const { return elements * size_of(dtype); }
};

/// Measures and checks all_reduce, in place, on memory of its own. All ranks make the same calls in the same order.
///
/// Threads   one thread at a time.
/// Errors    what the group and the stream throw.
class AllReduceBench {
 public:
  /// Allocates `largest_bytes` on every rank.
  AllReduceBench(ProcessGroup& group, kernels::Stream& stream, std::size_t largest_bytes,
                 AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic);
  ~AllReduceBench();

  /// How many elements were wrong, counted over all ranks: every rank checks every element of one all_reduce.
  std::size_t wrong_elements(const Payload& payload);
  /// Seconds of each iteration: the ranks come together once and then reduce again and again, as training does; of each
  /// iteration the slowest rank's time counts. Equal on all ranks.
  std::vector<double> seconds(const Payload& payload, const Repetitions& repetitions);

 private:
  void all_reduce(const Payload& payload);

  ProcessGroup& group_;
  kernels::Stream& stream_;
  std::unique_ptr<Segment> segment_;
  AllReduceAlgorithm algorithm_;
};

/// Of each iteration the time of the rank that took longest, from every rank's own times; equal on all ranks.
std::vector<double> slowest_of_all_ranks(ProcessGroup& group, std::span<const double> mine);

/// Bytes per second that an all_reduce of `bytes` in `seconds` comes to: as seen by its caller, and as seen by the
/// busiest link of a ring, 2 (W - 1) / W of it, which does not depend on the number of ranks.
///
/// Source    nccl-tests, doc/PERFORMANCE.md.
double algorithm_bandwidth(std::size_t bytes, double seconds);
double bus_bandwidth(std::size_t bytes, double seconds, int world_size);

}  // namespace gradring::comm::bench
