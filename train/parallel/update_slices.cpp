// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/update_slices.h"

#include <algorithm>

namespace gradring::train {
namespace {

const std::byte* end_of(const UpdateSlice& slice) {
  const std::size_t bytes = slice.elements * kernels::size_of(slice.copy.dtype);
  return static_cast<const std::byte*>(slice.copy.data) + bytes;
}

bool are_neighbours(const UpdateSlice& a, const UpdateSlice& b) {
  return a.decays == b.decays && a.weights + a.elements == b.weights && a.gradients + a.elements == b.gradients &&
         a.state_offset + a.elements == b.state_offset && (!a.copy.data || end_of(a) == b.copy.data);
}

void add(const UpdateSlice& slice, std::vector<UpdateSlice>& slices) {
  if (!slices.empty() && are_neighbours(slices.back(), slice))
    slices.back().elements += slice.elements;
  else
    slices.push_back(slice);
}

/// The parameters of a bucket in the order in which they lie there.
std::vector<int> parameters_in(const nn::ArenaLayout& layout, int bucket) {
  std::vector<int> inside;
  for (int parameter = 0; parameter < layout.parameters(); ++parameter)
    if (layout.bucket_of(parameter) == bucket) inside.push_back(parameter);
  std::ranges::sort(inside, {}, [&layout](int parameter) { return layout.parameter(parameter).offset; });
  return inside;
}

/// What of a rank's shard lies from `begin` to `end`, counted from the bucket's start; the shard is that of `whole`.
UpdateSlice part_of(const UpdateSlice& whole, const Shards::Slice& shard, std::size_t begin, std::size_t end) {
  UpdateSlice part = whole;
  const std::size_t first = std::max(begin, shard.offset), last = std::min(end, shard.offset + shard.elements);
  part.elements = first < last ? last - first : 0;
  const std::size_t skipped = part.elements > 0 ? first - shard.offset : 0;
  part.weights += skipped;
  part.gradients += skipped;
  part.state_offset += skipped;
  if (part.copy.data)
    part.copy.data = static_cast<std::byte*>(part.copy.data) + skipped * kernels::size_of(part.copy.dtype);
  return part;
}

}  // namespace

std::vector<bool> decaying(std::span<const nn::Parameter> parameters, const OptimizerSpec& optimizer) {
  std::vector<bool> decays;
  for (const nn::Parameter& parameter : parameters)
    decays.push_back(!optimizer.no_bias_decay || parameter.torch_shape.rank() > 1);
  return decays;
}

std::vector<UpdateSlice> update_slices(const Shards& shards, const ComputeWeights& weights,
                                       const ShardPointers& gradients, const std::vector<bool>& decaying) {
  const nn::ArenaLayout& layout = shards.layout();
  std::vector<UpdateSlice> slices;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket) {
    const auto b = static_cast<std::size_t>(bucket);
    const Shards::Slice packed = shards.packed(bucket);
    const UpdateSlice whole{.weights = weights.master()[b],
                            .gradients = gradients[b],
                            .copy = weights.copy(bucket),
                            .state_offset = packed.offset,
                            .elements = packed.elements};
    const std::vector<int> inside = parameters_in(layout, bucket);
    for (std::size_t i = 0; i < inside.size(); ++i) {  // what is between two goes with the first
      const auto begin_of = [&](std::size_t at) {
        return layout.parameter(inside[at]).offset - layout.bucket(bucket).offset;
      };
      const std::size_t end = i + 1 < inside.size() ? begin_of(i + 1) : layout.bucket(bucket).elements;
      UpdateSlice part = part_of(whole, shards.in_bucket(bucket), begin_of(i), end);
      part.decays = decaying[static_cast<std::size_t>(inside[i])];
      if (part.elements > 0) add(part, slices);
    }
  }
  return slices;
}

}  // namespace gradring::train
