// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/gradient_reducer.h"

#include <utility>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"

namespace gradring::train {
namespace {

using kernels::DType;

/// Adds up what backward has left of the gradients, before ranks sum them.
class PartialSumReduction {
 public:
  explicit PartialSumReduction(const ReducerParts& parts)
      : kernel_(kernels::pick_variant(parts.kernels.gradient_statistics, parts.device, DType::f32)),
        stream_(parts.stream),
        sums_(parts.partial_sums) {}

  /// `gradients`, where backward may leave some.
  nn::Gradients into(nn::Gradients gradients) const {
    gradients.partial_sums = &sums_;
    return gradients;
  }
  /// Forgets those of a pass that has failed.
  void begin_backward() { sums_.clear(); }
  void enqueue() {
    if (!sums_.empty()) kernel_.add_up(stream_, sums_);
    sums_.clear();
  }

 private:
  kernels::gradient_statistics::Variant kernel_;
  kernels::Stream& stream_;
  kernels::PartialSums& sums_;
};

/// Sums in the memory that backward wrote: every rank gets all sums, or with ZeRO 1 those of its shards.
class ReplicatedReducer final : public GradientReducer {
 public:
  ReplicatedReducer(const WireSpec& wire, const ReducerParts& parts)
      : parts_(parts),
        reduction_(wire, {.group = parts.group,
                          .gradients = parts.gradients,
                          .shards = parts.shards,
                          .cast = kernels::pick_variant(parts.kernels.cast, parts.device, wire.dtype)}),
        partial_sums_(parts),
        // Alone, a rank leaves them to the check.
        complete_(parts.group.world_size() > 1 || wire.dtype != DType::f32),
        gradients_(partial_sums_.into(gradients_within(parts.gradients, reduction_.loss_slot()))) {}

  const nn::Gradients& begin(Pass pass) override {
    check(pass.first && pass.last, "a step has several passes, but its gradients are not accumulated");
    return gradients_;
  }
  const nn::Gradients& gradients() const override { return gradients_; }
  void before_backward() override {
    partial_sums_.begin_backward();
    parts_.ddp.begin_backward(
        [this](int bucket, kernels::Stream& communication) { reduction_.enqueue_sum(bucket, communication); },
        [this] {
          if (complete_) partial_sums_.enqueue();
        });
  }
  void gradient_ready(int parameter) override { parts_.ddp.gradient_ready(parameter); }
  void enqueue_end() override { parts_.ddp.enqueue_join(); }

  ShardPointers sums() const override { return shards_within(parts_.shards, parts_.gradients); }
  const float* loss_sum() const override { return reduction_.loss_slot(); }
  ReducerBytes bytes() const override { return {.wire = reduction_.bytes()}; }

 private:
  ReducerParts parts_;
  BucketReduction reduction_;
  PartialSumReduction partial_sums_;
  bool complete_;
  nn::Gradients gradients_;
};

/// Every rank gets the sums of its shards (ZeRO 2 and 3). Backward writes buckets into a few slots. Each pass is summed
/// over the ranks, and the sums of this rank's shard are collected, so that the slot is free for another bucket.
///
/// Numerics  several passes (--sync-every-pass) are summed over the ranks first, then over the passes.
class ShardedReducer final : public GradientReducer {
 public:
  ShardedReducer(const WireSpec& wire, const ReducerParts& parts)
      : parts_(parts),
        reduction_(wire, {.group = parts.group,
                          .gradients = parts.gradients,
                          .shards = parts.shards,
                          .cast = kernels::pick_variant(parts.kernels.cast, parts.device, wire.dtype),
                          .loss_in_bucket = false}),
        rotation_(parts.device, parts.stream, parts.gradients, parts.ddp),
        accumulate_(kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::f32)),
        partial_sums_(parts),
        gradients_(partial_sums_.into(gradients_within(parts.gradients, reduction_.loss_slot()))),
        sums_(parts.device.allocate(parts.shards.elements() * sizeof(float))),
        loss_(parts.device.allocate(parts.shards.layout().piggyback().elements * sizeof(float))) {}

  const nn::Gradients& begin(Pass pass) override {
    first_pass_ = pass.first;
    return gradients_;
  }
  const nn::Gradients& gradients() const override { return gradients_; }
  void before_backward() override {
    rotation_.begin_backward();
    partial_sums_.begin_backward();
    parts_.ddp.begin_backward(
        [this](int bucket, kernels::Stream& communication) { enqueue_sum(bucket, communication); },
        [this] { partial_sums_.enqueue(); });
  }
  void gradients_begin(std::span<const int> parameters) override { rotation_.enqueue_open(parameters); }
  void gradient_ready(int parameter) override { parts_.ddp.gradient_ready(parameter); }
  void enqueue_end() override { parts_.ddp.enqueue_join(); }

  ShardPointers sums() const override { return packed_shards(parts_.shards, sums_.as<float>()); }
  const float* loss_sum() const override { return loss_.as<float>(); }
  ReducerBytes bytes() const override { return {.sums = sums_.size(), .wire = reduction_.bytes()}; }

 private:
  void enqueue_sum(int bucket, kernels::Stream& stream) {
    const nn::ArenaLayout& layout = parts_.shards.layout();
    reduction_.enqueue_sum(bucket, stream);
    const auto* const whole = reinterpret_cast<const float*>(parts_.gradients.data(bucket));
    const Shards::Slice packed = parts_.shards.packed(bucket);
    enqueue_collect(whole + parts_.shards.in_bucket(bucket).offset, sums_.as<float>() + packed.offset, packed.elements,
                    stream);
    if (bucket + 1 == layout.buckets())
      enqueue_collect(reduction_.loss_slot(), loss_.as<float>(), layout.piggyback().elements, stream);
    rotation_.record_collected(bucket, stream);
  }
  void enqueue_collect(const float* from, float* to, std::size_t elements, kernels::Stream& stream) {
    if (first_pass_)
      stream.enqueue_copy(to, from, elements * sizeof(float));
    else
      accumulate_.run(stream, {.dtype = DType::f32, .x = from, .y = to, .elements = elements});
  }

  ReducerParts parts_;
  BucketReduction reduction_;
  SlotRotation rotation_;
  kernels::accumulate::Variant accumulate_;
  PartialSumReduction partial_sums_;
  nn::Gradients gradients_;
  kernels::Buffer sums_;  // of this rank's shards, packed
  kernels::Buffer loss_;
  bool first_pass_ = true;
};

/// Sums the passes of a step on this rank, so that ranks exchange gradients once per step: PyTorch's no_sync.
///
///   first pass    writes the sums
///   later passes  write where `next` reads; each tensor, once it is ready, is added to the sums
///   last pass     writes there, too; the sums are added to each tensor, which then goes to `next`
///
/// Memory    an arena of gradients.
/// Numerics  sums in f32, in the order of the passes; a step of one pass is unchanged.
class AccumulatedReducer final : public GradientReducer {
 public:
  AccumulatedReducer(std::unique_ptr<GradientReducer> next, const ReducerParts& parts)
      : next_(std::move(next)),
        stream_(parts.stream),
        accumulate_(kernels::pick_variant(parts.kernels.accumulate, parts.device, DType::f32)),
        memory_(parts.device.allocate(parts.gradients.layout().elements() * sizeof(float))),
        sums_(nn::gradients_in({parts.gradients.layout(), memory_.as<float>()})) {}

  const nn::Gradients& begin(Pass pass) override {
    pass_ = pass;
    loss_added_ = pass.first;
    if (pass.last) return next_->begin({});
    return pass.first ? sums_ : next_->gradients();
  }
  const nn::Gradients& gradients() const override { return next_->gradients(); }
  void before_backward() override {
    if (pass_.last) next_->before_backward();
  }
  void gradients_begin(std::span<const int> parameters) override {
    if (pass_.last) next_->gradients_begin(parameters);
  }
  void gradient_ready(int parameter) override {
    const nn::Gradients& newest = next_->gradients();
    if (!std::exchange(loss_added_, true))  // it is ready before all gradients, and may leave with the first bucket
      enqueue_add(newest.piggyback, sums_.piggyback, sums_.layout.piggyback().elements);
    if (!pass_.first)
      enqueue_add(newest.parameter(parameter), sums_.parameter(parameter), sums_.layout.parameter(parameter).elements);
    if (pass_.last) next_->gradient_ready(parameter);
  }
  void enqueue_end() override {
    if (pass_.last) next_->enqueue_end();
  }

  ShardPointers sums() const override { return next_->sums(); }
  const float* loss_sum() const override { return next_->loss_sum(); }
  ReducerBytes bytes() const override { return next_->bytes(); }

 private:
  /// sum += newest, and in the last pass newest += sum.
  void enqueue_add(float* newest, float* sum, std::size_t elements) {
    accumulate_.run(
        stream_,
        {.dtype = DType::f32, .x = pass_.last ? sum : newest, .y = pass_.last ? newest : sum, .elements = elements});
  }

  std::unique_ptr<GradientReducer> next_;
  kernels::Stream& stream_;
  kernels::accumulate::Variant accumulate_;
  kernels::Buffer memory_;
  nn::Gradients sums_;
  Pass pass_;
  bool loss_added_ = false;  // in this pass
};

}  // namespace

BucketReduction::BucketReduction(const WireSpec& spec, const Parts& parts) : spec_(spec), parts_(parts) {
  const nn::ArenaLayout& layout = parts.gradients.layout();
  const int last = layout.buckets() - 1;
  const std::size_t in_bucket = layout.piggyback().offset - layout.bucket(last).offset;
  if (parts.loss_in_bucket && parts.shards.whole() && spec.dtype == DType::f32) {
    loss_ = reinterpret_cast<float*>(parts.gradients.data(last)) + in_bucket;
  } else {
    const std::size_t elements = layout.piggyback().elements;
    const int world = parts.group.world_size();
    loss_segment_ = parts.group.allocate(elements * static_cast<std::size_t>(world) * sizeof(float));
    const int shard = Shards(layout, world, parts.group.rank()).owner(last, in_bucket);
    loss_ = loss_segment_->as<float>() + elements * static_cast<std::size_t>(shard);
  }
  if (spec.dtype != DType::f32)
    rounded_.emplace(BucketMemorySpec{.dtype = spec.dtype, .slots = parts.gradients.slots()}, parts.group, layout);
}

void BucketReduction::enqueue_sum(int bucket, kernels::Stream& stream) {
  if (loss_segment_ && bucket + 1 == parts_.gradients.layout().buckets())
    parts_.group.all_reduce({.segment = loss_segment_.get(), .slice = {0, loss_segment_->size() / sizeof(float)}},
                            stream, spec_.algorithm);
  rounded_ ? enqueue_rounded_sum(bucket, stream) : enqueue_collective(parts_.gradients.range(bucket), stream);
}

void BucketReduction::enqueue_rounded_sum(int bucket, kernels::Stream& stream) {
  auto* const f32 = reinterpret_cast<float*>(parts_.gradients.data(bucket));
  std::byte* const rounded = rounded_->data(bucket);
  const Shards::Slice sum = parts_.shards.in_bucket(bucket);
  parts_.cast.run(stream, {.from = DType::f32,
                           .to = spec_.dtype,
                           .x = f32,
                           .y = rounded,
                           .elements = parts_.gradients.layout().bucket(bucket).elements});
  enqueue_collective(rounded_->range(bucket), stream);
  parts_.cast.run(stream, {.from = spec_.dtype,
                           .to = DType::f32,
                           .x = rounded + sum.offset * kernels::size_of(spec_.dtype),
                           .y = f32 + sum.offset,
                           .elements = sum.elements});
}

void BucketReduction::enqueue_collective(const comm::SegmentRange& range, kernels::Stream& stream) {
  parts_.shards.whole() ? parts_.group.all_reduce(range, stream, spec_.algorithm)
                        : parts_.group.reduce_scatter(range, stream);
}

std::unique_ptr<GradientReducer> make_gradient_reducer(const GradientReducerSpec& spec, const ReducerParts& parts) {
  if (spec.exact_terms > 0) return make_exact_reducer(spec, parts);
  std::unique_ptr<GradientReducer> reducer;
  if (spec.sharded)
    reducer = std::make_unique<ShardedReducer>(spec.wire, parts);
  else
    reducer = std::make_unique<ReplicatedReducer>(spec.wire, parts);
  if (spec.accumulates) reducer = std::make_unique<AccumulatedReducer>(std::move(reducer), parts);
  return reducer;
}

}  // namespace gradring::train
