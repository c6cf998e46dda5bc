// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/non_finite_check.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

namespace gradient_statistics = kernels::gradient_statistics;

/// f16's least positive number.
constexpr float kTiny = 0x1p-24f;
constexpr std::size_t kNumbersPerBlock = 2;

/// The elements from a bucket's start to the end of its last tensor; loss and padding follow.
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
    blocks += gradient_statistics::block_count(content_of(layout, bucket));
  return blocks;
}

}  // namespace

NonFiniteCheck::NonFiniteCheck(const Parts& parts, const ShardPointers& gradients)
    : parts_(parts),
      block_count_(block_count_of(parts.shards.layout())),
      notes_at_(gradient_statistics::notes_behind(block_count_)),
      blocks_(parts.group.allocate(kNumbersPerBlock * notes_at_ * sizeof(float))),
      sum_(parts.device.allocate(sizeof(float))) {
  const nn::ArenaLayout& layout = parts.shards.layout();
  std::size_t first_block = 0;
  for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
    const std::size_t content = content_of(layout, bucket);
    const Shards::Slice shard = parts.shards.in_bucket(bucket);
    check(shard.offset % gradient_statistics::kBlock == 0, "a shard of the gradients does not begin at a block");
    if (shard.offset < content)
      add({.x = gradients[static_cast<std::size_t>(bucket)],
           .elements = std::min(shard.elements, content - shard.offset),
           .first_block = first_block + shard.offset / gradient_statistics::kBlock});
    first_of_bucket_.push_back(static_cast<std::int64_t>(first_block * gradient_statistics::kBlock));
    padding_ += static_cast<std::int64_t>(content);
    first_block += gradient_statistics::block_count(content);
  }
  for (int parameter = 0; parameter < layout.parameters(); ++parameter)
    if (!layout.is_frozen(parameter)) gradients_ += static_cast<std::int64_t>(layout.parameter(parameter).elements);
  padding_ -= gradients_;
}

int NonFiniteCheck::parameter_at(std::int64_t first_non_finite) const {
  const nn::ArenaLayout& layout = parts_.shards.layout();
  for (int parameter = 0; parameter < layout.parameters(); ++parameter) {
    const int bucket = layout.bucket_of(parameter);
    if (layout.is_frozen(parameter)) continue;
    const auto in_bucket = static_cast<std::int64_t>(layout.parameter(parameter).offset - layout.bucket(bucket).offset);
    const std::int64_t begin = first_of_bucket_[static_cast<std::size_t>(bucket)] + in_bucket;
    const std::int64_t end = begin + static_cast<std::int64_t>(layout.parameter(parameter).elements);
    if (first_non_finite >= begin && first_non_finite < end) return parameter;
  }
  return -1;
}

double NonFiniteCheck::share_of(std::int64_t tiny_gradients) const {
  return static_cast<double>(tiny_gradients - padding_) / static_cast<double>(gradients_);
}

/// Merges neighbours.
void NonFiniteCheck::add(const Run& run) {
  Run* const last = runs_.empty() ? nullptr : &runs_.back();
  if (last && last->x + last->elements == run.x && last->elements % gradient_statistics::kBlock == 0 &&
      last->first_block + last->elements / gradient_statistics::kBlock == run.first_block)
    last->elements += run.elements;
  else
    runs_.push_back(run);
}

void NonFiniteCheck::enqueue(kernels::Stream& stream, const Results& results) {
  if (!parts_.shards.whole()) enqueue_shards(stream);
  parts_.kernel.finish(stream, {.runs = parts_.shards.whole() ? runs_ : std::span<const Run>(),
                                .partial_sums = parts_.partial_sums,
                                .tiny = kTiny,
                                .blocks = blocks_->as<float>(),
                                .notes = notes(),
                                .count = block_count_,
                                .sum = sum_.as<float>(),
                                .non_finite = &results.found->non_finite,
                                .first_non_finite = &results.found->first_non_finite,
                                .tiny_count = &results.found->tiny_gradients,
                                .prepare = results.prepare,
                                .arrivals = results.arrivals});
  parts_.partial_sums.clear();
}

/// Each block's results are on one rank, and 0 on the others, until they are exchanged.
void NonFiniteCheck::enqueue_shards(kernels::Stream& stream) {
  auto* const blocks = blocks_->as<float>();
  stream.enqueue_zero(blocks, blocks_->size());
  for (const Run& run : runs_)
    parts_.kernel.blocks(stream, {.dtype = kernels::DType::f32,
                                  .x = run.x,
                                  .elements = run.elements,
                                  .tiny = kTiny,
                                  .blocks = blocks + run.first_block,
                                  .notes = notes() + run.first_block});
  parts_.ddp.enqueue_in_line([this](kernels::Stream& here) {
    parts_.group.all_reduce({.segment = blocks_.get(), .slice = {0, kNumbersPerBlock * notes_at_}}, here);
  });
}

}  // namespace gradring::train
