// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "comm/bench/collective_bench.h"
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

/// Measures and checks in-place all_reduce. The time of a call includes enqueueing it and waiting for its end.
class AllReduceBench final : public CollectiveBench {
 public:
  /// Allocates `largest_bytes` on every rank. `gpu`: the device of the group's memory where the host cannot address it;
  /// numbers then go through pinned memory of the same size.
  AllReduceBench(ProcessGroup& group, kernels::Stream& stream, std::size_t largest_bytes,
                 AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic, kernels::Device* gpu = nullptr);

  std::optional<std::size_t> wrong_elements(const Payload& payload) override;
  std::vector<double> seconds(const Payload& payload, const Repetitions& repetitions) override;

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

/// Bandwidths of an all_reduce of `bytes` in `seconds`, in bytes per second. The bus bandwidth is that of the busiest
/// link of a ring, 2 (W - 1) / W of the algorithm bandwidth, so that it compares different world sizes.
///
/// Source    nccl-tests, doc/PERFORMANCE.md.
double algorithm_bandwidth(std::size_t bytes, double seconds);
double bus_bandwidth(std::size_t bytes, double seconds, int world_size);

}  // namespace gradring::comm::bench
