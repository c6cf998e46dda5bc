// SPDX-License-Identifier: Apache-2.0
#include "data/samplers/distributed_sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "data/samplers/check_rank.h"

namespace gradring::data {
namespace {

/// From here on PyTorch draws 64 bits a swap.
constexpr std::int64_t kTooManyForTorch = std::numeric_limits<std::uint32_t>::max() / 20;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<std::int64_t> torch_permutation(std::int64_t count, std::uint64_t seed) {
  check(count >= 0 && count < kTooManyForTorch, "cannot shuffle " + std::to_string(count) + " samples: at most " +
                                                    std::to_string(kTooManyForTorch - 1) + " are supported");
  std::mt19937 random(static_cast<std::uint32_t>(seed));  // PyTorch, too, seeds with the lower 32 bits
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + random() % (order.size() - i)]);
  return order;
}

DistributedSampler::DistributedSampler(DistributedSamplerSpec spec) : spec_(spec) {
  check_rank(spec.samples, spec.rank, spec.world_size);
  size_ = spec.drop_last ? spec.samples / spec.world_size : ceil_div(spec.samples, spec.world_size);
}

std::vector<std::int64_t> DistributedSampler::order(std::int64_t epoch) const {
  std::vector<std::int64_t> all;
  if (spec_.shuffle) {
    all = torch_permutation(spec_.samples, spec_.seed + static_cast<std::uint64_t>(epoch));
  } else {
    all.resize(static_cast<std::size_t>(spec_.samples));
    std::iota(all.begin(), all.end(), std::int64_t{0});
  }
  std::vector<std::int64_t> mine(static_cast<std::size_t>(size_));
  for (std::int64_t position = 0; position < size_; ++position) {
    const std::int64_t global = position * spec_.world_size + spec_.rank;
    mine[static_cast<std::size_t>(position)] = all[static_cast<std::size_t>(global % spec_.samples)];  // % pads
  }
  return mine;
}

bool DistributedSampler::padding(std::int64_t position) const {
  return position * spec_.world_size + spec_.rank >= spec_.samples;
}

}  // namespace gradring::data
