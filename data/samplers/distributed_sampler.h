// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "data/samplers/sampler.h"

namespace gradring::data {

/// The same fields and defaults as PyTorch's DistributedSampler.
struct DistributedSamplerSpec {
  std::int64_t samples = 0;  ///< in the data set
  int rank = 0;
  int world_size = 1;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;  ///< true: leave out what does not divide evenly; false: repeat some samples instead
};

/// PyTorch's DistributedSampler, index by index: one permutation for all ranks, seeded with seed + epoch, padded (or
/// cut) to a multiple of world_size, of which rank r takes r, r + world_size, ...
///
/// Errors    InvalidArgument if rank is outside the world (PyTorch's own words), or there are 214,748,364 samples or
///           more, from where PyTorch shuffles otherwise.
/// Cost      order: all indices are drawn on every rank; 8 bytes a sample of the whole set.
/// Source    torch/utils/data/distributed.py; MT19937 (Matsumoto, Nishimura 1998); Fisher-Yates as in randperm_cpu.
/// Example   tests/data/samplers/distributed_sampler_test.cpp
class DistributedSampler final : public Sampler {
 public:
  explicit DistributedSampler(DistributedSamplerSpec spec);

  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override { return size_; }
  bool padding(std::int64_t position) const override;

 private:
  DistributedSamplerSpec spec_;
  std::int64_t size_ = 0;
};

/// torch.randperm(count) after torch.manual_seed(seed), on the CPU.
std::vector<std::int64_t> torch_permutation(std::int64_t count, std::uint64_t seed);

}  // namespace gradring::data
