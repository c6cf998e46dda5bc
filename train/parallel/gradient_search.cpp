// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_search.h"

#include <algorithm>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

namespace sum_of_squares = kernels::sum_of_squares;

/// From a bucket's start to the end of its last tensor: behind that come riders, and zeros as the number of ranks wants them.
std::size_t content_of(const nn::ArenaLayout& layout, int bucket) {
  std::size_t end = layout.bucket(bucket).offset;
  for (int parameter = 0; parameter < layout.parameters(); ++parameter)
    if (layout.bucket_of(parameter) == bucket)
      end = std::max(end, layout.parameter(parameter).offset + layout.parameter(parameter).elements);
  return end - layout.bucket(bucket).offset;
}

std::size_t block_count_of(const nn::ArenaLayout& layout) {
  std::size_t blocks = 0;
  for (int bucket = 0; bucket < layout.buckets(); ++bucket)
    blocks += sum_of_squares::block_count(content_of(layout, bucket));
  return blocks;
}

}  // namespace

std::size_t GradientSearch::bytes_of(const nn::ArenaLayout& layout) { return block_count_of(layout) * sizeof(float); }

GradientSearch::GradientSearch(const Parts& parts, const ShardPointers& gradients)
    : parts_(parts),
      block_count_(block_count_of(parts.shards.layout())),
      blocks_(parts.group.allocate(block_count_ * sizeof(float))),
      sum_(parts.device.allocate(sizeof(float))) {
  const nn::ArenaLayout& layout = parts.shards.layout();
  std::size_t first_block = 0;
  for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
    const std::size_t content = content_of(layout, bucket);
    const Shards::Slice shard = parts.shards.in_bucket(bucket);
    check(shard.offset % sum_of_squares::kBlock == 0, "a shard of the gradients begins within a block");
    if (shard.offset < content)
      add({.data = gradients[static_cast<std::size_t>(bucket)],
           .block = first_block + shard.offset / sum_of_squares::kBlock,
           .elements = std::min(shard.elements, content - shard.offset)});
    first_block += sum_of_squares::block_count(content);
  }
}

/// Neighbours are searched as one.
void GradientSearch::add(const Run& run) {
  Run* const last = runs_.empty() ? nullptr : &runs_.back();
  if (last && last->data + last->elements == run.data && last->elements % sum_of_squares::kBlock == 0 &&
      last->block + last->elements / sum_of_squares::kBlock == run.block)
    last->elements += run.elements;
  else
    runs_.push_back(run);
}

void GradientSearch::enqueue(kernels::Stream& stream, std::int32_t* non_finite) {
  auto* const blocks = blocks_->as<float>();
  if (!parts_.shards.whole()) stream.enqueue_zero(blocks, blocks_->size());  // those of others
  for (const Run& run : runs_)
    parts_.kernel.blocks(
        stream, {.dtype = kernels::DType::f32, .x = run.data, .elements = run.elements, .blocks = blocks + run.block});
  if (!parts_.shards.whole()) enqueue_exchange();
  parts_.kernel.total(stream,
                      {.blocks = blocks, .count = block_count_, .sum = sum_.as<float>(), .non_finite = non_finite});
}

/// Each block is a number on one rank, and 0 on all others.
void GradientSearch::enqueue_exchange() {
  parts_.ddp.enqueue_in_line([this](kernels::Stream& stream) {
    parts_.group.all_reduce({.segment = blocks_.get(), .slice = {0, block_count_}}, stream);
  });
}

}  // namespace gradring::train
