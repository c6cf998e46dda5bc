// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::comm::bench {

/// Test data whose sums over ranks can be checked with ==: small integers, different at every rank and element. Every
/// partial sum is exact in every dtype and in any order, for up to 256 ranks.
///
/// Types     f32, f16, bf16, i32, i64.
/// Source    nccl-tests, verifiable/.
struct ExactSums {
  int world_size = 1;

  /// Writes the contribution of `rank` to array[i], for i in [0, elements).
  void fill(std::byte* array, std::size_t elements, kernels::DType dtype, int rank) const;
  /// The number of elements that differ from the sum of all ranks' contributions.
  std::size_t count_wrong(const std::byte* array, std::size_t elements, kernels::DType dtype) const;
};

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

/// Measures and checks in-place all_reduce. All ranks make the same calls in the same order. The time of a call includes
/// enqueueing it and waiting for its end.
///
/// Threads   one thread at a time.
/// Errors    as ProcessGroup and Stream.
class AllReduceBench {
 public:
  /// Allocates `largest_bytes` on every rank. `gpu`: the device of the group's memory where the host cannot address it;
  /// numbers then go through pinned memory of the same size.
  AllReduceBench(ProcessGroup& group, kernels::Stream& stream, std::size_t largest_bytes,
                 AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic, kernels::Device* gpu = nullptr);

  /// The wrong elements of one all_reduce, counted over all ranks: every rank checks every element.
  std::size_t wrong_elements(const Payload& payload);
  /// Seconds of each iteration, after one barrier: the slowest rank's time. Equal on all ranks.
  std::vector<double> seconds(const Payload& payload, const Repetitions& repetitions);

 private:
  void all_reduce(const Payload& payload);
  void synchronize();
  /// Where the host writes and reads numbers.
  std::byte* host_data() const { return staging_.size() > 0 ? staging_.data() : segment_->data(); }

  ProcessGroup& group_;
  kernels::Stream& stream_;
  std::unique_ptr<Segment> segment_;
  kernels::Buffer staging_;  // empty where the host addresses the segment
  AllReduceAlgorithm algorithm_;
};

/// For each iteration the largest of all ranks' times; equal on all ranks.
std::vector<double> slowest_of_all_ranks(ProcessGroup& group, std::span<const double> mine);

/// Bandwidths of an all_reduce of `bytes` in `seconds`, in bytes per second. The bus bandwidth is that of the busiest
/// link of a ring, 2 (W - 1) / W of the algorithm bandwidth, so that it compares different world sizes.
///
/// Source    nccl-tests, doc/PERFORMANCE.md.
double algorithm_bandwidth(std::size_t bytes, double seconds);
double bus_bandwidth(std::size_t bytes, double seconds, int world_size);

}  // namespace gradring::comm::bench
