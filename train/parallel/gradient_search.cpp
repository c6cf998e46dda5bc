// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_search.h"

#include <algorithm>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

namespace sum_of_squares = kernels::sum_of_squares;

}  // namespace

GradientSearch::GradientSearch(const Parts& parts, const ShardPointers& gradients)
    : parts_(parts),
      block_count_(sum_of_squares::block_count(parts.shards.layout().riders().offset)),
      blocks_(parts.group.allocate(block_count_ * sizeof(float))),
      sum_(parts.device.allocate(sizeof(float))) {
  for (int bucket = 0; bucket < parts.shards.layout().buckets(); ++bucket) {
    const Shards::Slice shard = parts.shards.in_arena(bucket);
    add({.data = gradients[static_cast<std::size_t>(bucket)], .offset = shard.offset, .elements = shard.elements});
  }
}

void GradientSearch::add(const Run& run) {
  check(run.offset % sum_of_squares::kBlock == 0, "a shard of the gradients begins within a block");
  const std::size_t end = parts_.shards.layout().riders().offset;
  const std::size_t elements = std::min(run.offset + run.elements, std::max(end, run.offset)) - run.offset;
  Run* const last = runs_.empty() ? nullptr : &runs_.back();
  if (last && last->data + last->elements == run.data && last->offset + last->elements == run.offset)
    last->elements += elements;
  else
    runs_.push_back({run.data, run.offset, elements});
}

void GradientSearch::enqueue(kernels::Stream& stream, std::int32_t* non_finite) {
  auto* const blocks = blocks_->as<float>();
  if (!parts_.shards.whole()) stream.enqueue_zero(blocks, blocks_->size());  // those of others
  for (const Run& run : runs_)
    parts_.kernel.blocks(stream, {.dtype = kernels::DType::f32,
                                  .x = run.data,
                                  .elements = run.elements,
                                  .blocks = blocks + run.offset / sum_of_squares::kBlock});
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
