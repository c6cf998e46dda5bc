// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/lib/variant.h"
#include "kernels/ops/exact_sum/exact_sum.h"
#include "train/core/ddp/gradient_reducer.h"

namespace gradring::train {
namespace {

using kernels::DType;

/// Units of gradients without the loss scale, and of losses: 62 bits of them reach 2^18 and 2^38.
constexpr double kUnit = 0x1p-44;
constexpr double kLossUnit = 0x1p-24;

/// Gradients and losses as integer multiples of a unit, and back (kernels/ops/exact_sum). A value that has no such
/// multiple, because it is too large or not finite, is rejected and counted per parameter. After the counts are summed
/// over the ranks, all gradients of a parameter with a rejected value become NaN, and likewise the loss.
///
/// Numerics  a gradient below 2^-45 becomes 0; sums are exact, and rounded once.
class UnitConversion {
 public:
  UnitConversion(const ReducerParts& parts, std::int64_t terms)
      : stream_(parts.stream),
        group_(parts.group),
        kernel_(kernels::pick_variant(parts.kernels.exact_sum, parts.device, DType::f32)),
        most_((std::int64_t{1} << 62) / std::max<std::int64_t>(terms, 1)),
        totals_(group_.allocate((2 + static_cast<std::size_t>(parts.shards.layout().parameters())) *
                                sizeof(std::int64_t))) {}

  void set_loss_scale(const float* loss_scale) { loss_scale_ = loss_scale; }
  /// Begins a new sum.
  void enqueue_clear() { stream_.enqueue_zero(totals_->data(), totals_->size()); }
  void enqueue_add(int parameter, std::size_t elements, const float* gradients, std::int64_t* units) {
    kernel_.add(stream_, {.elements = elements,
                          .x = gradients,
                          .scale = loss_scale_,
                          .units = units,
                          .refused = rejected(parameter),
                          .unit = kUnit,
                          .most = most_});
  }
  void enqueue_add_loss(const float* loss) {
    kernel_.add(stream_, {.elements = 1,
                          .x = loss,
                          .units = loss_units(),
                          .refused = rejected_losses(),
                          .unit = kLossUnit,
                          .most = most_});
  }
  /// Sums counts and loss over the ranks; to be called before anything is read.
  void enqueue_sum(kernels::Stream& stream, comm::AllReduceAlgorithm algorithm) {
    group_.all_reduce(
        {.segment = totals_.get(), .slice = {0, totals_->size() / sizeof(std::int64_t)}, .dtype = DType::i64}, stream,
        algorithm);
  }
  void enqueue_read(int parameter, std::size_t elements, const std::int64_t* units, float* gradients) {
    kernel_.read(stream_, {.elements = elements,
                           .units = units,
                           .refused = rejected(parameter),
                           .scale = loss_scale_,
                           .x = gradients,
                           .unit = kUnit});
  }
  void enqueue_read_loss(float* loss) {
    kernel_.read(stream_,
                 {.elements = 1, .units = loss_units(), .refused = rejected_losses(), .x = loss, .unit = kLossUnit});
  }
  std::size_t bytes() const { return totals_->size(); }

 private:
  std::int64_t* loss_units() const { return totals_->as<std::int64_t>(); }
  std::int64_t* rejected_losses() const { return loss_units() + 1; }
  std::int64_t* rejected(int parameter) const { return loss_units() + 2 + parameter; }

  kernels::Stream& stream_;
  comm::ProcessGroup& group_;
  kernels::exact_sum::Variant kernel_;
  std::int64_t most_;
  std::unique_ptr<comm::Segment> totals_;
  const float* loss_scale_ = nullptr;
};

/// Sums that depend neither on the number of ranks nor on how a step's samples are divided into passes, or gradients
/// into buckets and ZeRO's shards, as long as the data shards are equal: the gradients of each are rounded to 64-bit
/// integer units, and those are added. Replicated, every bucket has a slot of units, in which the passes add up, and is
/// summed over the ranks after the last pass. Sharded, buckets share slots, every pass is summed at once, and each rank
/// collects its shards' units.
///
/// Memory    8 bytes per element of the slots, from the transport, and per element of the collected shards.
class ExactReducer final : public GradientReducer {
 public:
  ExactReducer(const GradientReducerSpec& spec, const ReducerParts& parts)
      : algorithm_(spec.wire.algorithm),
        parts_(parts),
        conversion_(parts, spec.exact_terms),
        units_({.dtype = DType::i64, .slots = spec.sharded ? parts.gradients.slots() : 0}, parts.group,
               parts.shards.layout()),
        accumulate_(kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::i64)),
        collected_units_(parts.device.allocate(spec.sharded ? parts.shards.elements() * sizeof(std::int64_t) : 0)),
        collected_(parts.device.allocate(spec.sharded ? parts.shards.elements() * sizeof(float) : 0)),
        loss_(parts.device.allocate(sizeof(float))),
        gradients_(gradients_within(parts.gradients, loss_.as<float>())) {
    if (spec.sharded) rotation_.emplace(parts.device, parts.stream, parts.gradients, parts.ddp);
  }

  void set_loss_scale(const float* loss_scale) override { conversion_.set_loss_scale(loss_scale); }
  const nn::Gradients& gradients() const override { return gradients_; }
  const nn::Gradients& begin(Pass pass) override {
    pass_ = pass;
    if (pass.first) {
      conversion_.enqueue_clear();
      if (!rotation_) parts_.stream.enqueue_zero(units_.data(0), units_.bytes());
    }
    return gradients_;
  }
  void before_backward() override {
    if (rotation_) rotation_->begin_backward();
    if (sends())
      parts_.ddp.begin_backward(
          [this](int bucket, kernels::Stream& communication) { enqueue_sum(bucket, communication); });
  }
  void gradients_begin(std::span<const int> parameters) override {
    if (rotation_) rotation_->enqueue_open(parameters);
  }
  void loss_of_shard() override { conversion_.enqueue_add_loss(loss_.as<float>()); }
  void gradients_of_shard(std::span<const int> parameters) override {
    const nn::ArenaLayout& layout = units_.layout();
    for (const int parameter : parameters) {
      const int bucket = layout.bucket_of(parameter);
      conversion_.enqueue_add(parameter, layout.parameter(parameter).elements, gradients_.parameter(parameter),
                              slot(bucket) + (layout.parameter(parameter).offset - layout.bucket(bucket).offset));
    }
  }
  void gradient_ready(int parameter) override {
    if (sends()) parts_.ddp.gradient_ready(parameter);
  }
  void enqueue_end() override {
    if (sends()) parts_.ddp.enqueue_join();
    if (!pass_.last) return;
    const ShardPointers to = sums();
    for (int bucket = 0; bucket < units_.layout().buckets(); ++bucket)
      for (const auto& [parameter, slice] : parts_.shards.parts(bucket))
        conversion_.enqueue_read(parameter, slice.elements, summed_units(bucket) + slice.offset,
                                 to[static_cast<std::size_t>(bucket)] + slice.offset);
    conversion_.enqueue_read_loss(loss_.as<float>());
  }

  ShardPointers sums() const override {
    return rotation_ ? packed_shards(parts_.shards, collected_.as<float>())
                     : shards_within(parts_.shards, parts_.gradients);
  }
  const float* loss_sum() const override { return loss_.as<float>(); }
  ReducerBytes bytes() const override {
    return {.sums = collected_units_.size() + collected_.size(), .wire = units_.bytes() + conversion_.bytes()};
  }

 private:
  /// Whether this pass's buckets are summed over the ranks.
  bool sends() const { return rotation_ || pass_.last; }
  std::int64_t* slot(int bucket) const { return reinterpret_cast<std::int64_t*>(units_.data(bucket)); }
  /// The sums of this rank's shard of a bucket, after the last pass.
  const std::int64_t* summed_units(int bucket) const {
    return rotation_ ? collected_units_.as<std::int64_t>() + parts_.shards.packed(bucket).offset
                     : slot(bucket) + parts_.shards.in_bucket(bucket).offset;
  }
  void enqueue_sum(int bucket, kernels::Stream& stream) {
    parts_.shards.whole() ? parts_.group.all_reduce(units_.range(bucket), stream, algorithm_)
                          : parts_.group.reduce_scatter(units_.range(bucket), stream);
    if (rotation_) enqueue_collect(bucket, stream);
    if (pass_.last && bucket + 1 == units_.layout().buckets()) conversion_.enqueue_sum(stream, algorithm_);
  }
  /// Leaves zeros in the slot: its next bucket is added to them.
  void enqueue_collect(int bucket, kernels::Stream& stream) {
    const std::int64_t* const from = slot(bucket) + parts_.shards.in_bucket(bucket).offset;
    const Shards::Slice packed = parts_.shards.packed(bucket);
    std::int64_t* const to = collected_units_.as<std::int64_t>() + packed.offset;
    if (pass_.first)
      stream.enqueue_copy(to, from, packed.elements * sizeof(std::int64_t));
    else
      accumulate_.run(stream, {.dtype = DType::i64, .x = from, .y = to, .elements = packed.elements});
    stream.enqueue_zero(units_.data(bucket), units_.bytes(bucket));
    rotation_->record_collected(bucket, stream);
  }

  comm::AllReduceAlgorithm algorithm_;
  ReducerParts parts_;
  UnitConversion conversion_;
  BucketMemory units_;
  kernels::accumulate::Variant accumulate_;
  kernels::Buffer collected_units_;  // of this rank's shards, packed; empty unless sharded
  kernels::Buffer collected_;        // the same in f32
  kernels::Buffer loss_;
  nn::Gradients gradients_;
  std::optional<SlotRotation> rotation_;  // if sharded
  Pass pass_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_exact_reducer(const GradientReducerSpec& spec, const ReducerParts& parts) {
  return std::make_unique<ExactReducer>(spec, parts);
}

}  // namespace gradring::train
