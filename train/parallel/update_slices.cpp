// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/update_slices.h"

namespace gradring::train {
namespace {

const std::byte* end_of(const UpdateSlice& slice) {
  const std::size_t bytes = slice.elements * kernels::size_of(slice.copy.dtype);
  return static_cast<const std::byte*>(slice.copy.data) + bytes;
}

bool are_neighbours(const UpdateSlice& a, const UpdateSlice& b) {
  return a.weights + a.elements == b.weights && a.gradients + a.elements == b.gradients &&
         a.state_offset + a.elements == b.state_offset && (!a.copy.data || end_of(a) == b.copy.data);
}

}  // namespace

std::vector<UpdateSlice> update_slices(const Shards& shards, const ComputeWeights& weights,
                                       const ShardPointers& gradients) {
  std::vector<UpdateSlice> slices;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket) {
    const auto b = static_cast<std::size_t>(bucket);
    const Shards::Slice packed = shards.packed(bucket);
    const UpdateSlice slice{.weights = weights.master()[b],
                            .gradients = gradients[b],
                            .copy = weights.copy(bucket),
                            .state_offset = packed.offset,
                            .elements = packed.elements};
    if (!slices.empty() && are_neighbours(slices.back(), slice))
      slices.back().elements += slice.elements;
    else
      slices.push_back(slice);
  }
  return slices;
}

}  // namespace gradring::train
