// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/update_slices.h"

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

UpdateSlice part_of(const UpdateSlice& whole, const Shards::Slice& slice) {
  UpdateSlice part = whole;
  part.elements = slice.elements;
  part.weights += slice.offset;
  part.gradients += slice.offset;
  part.state_offset += slice.offset;
  if (part.copy.data)
    part.copy.data = static_cast<std::byte*>(part.copy.data) + slice.offset * kernels::size_of(part.copy.dtype);
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
  std::vector<UpdateSlice> slices;
  for (int bucket = 0; bucket < shards.layout().buckets(); ++bucket) {
    const auto b = static_cast<std::size_t>(bucket);
    const Shards::Slice packed = shards.packed(bucket);
    const UpdateSlice whole{.weights = weights.master()[b],
                            .gradients = gradients[b],
                            .copy = weights.copy(bucket),
                            .state_offset = packed.offset,
                            .elements = packed.elements};
    for (const auto& [parameter, slice] : shards.parts(bucket)) {
      UpdateSlice part = part_of(whole, slice);
      part.decays = decaying[static_cast<std::size_t>(parameter)];
      add(part, slices);
    }
  }
  return slices;
}

}  // namespace gradring::train
