// SPDX-License-Identifier: Apache-2.0
#include "kernels/variant.h"
#include "train/ddp/gradient_reducer.h"

namespace gradring::train {
namespace {

using kernels::DType;

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
        gradients_(gradients_within(parts.gradients, reduction_.loss_slot())),
        sums_(parts.device.allocate(parts.shards.elements() * sizeof(float))),
        loss_(parts.device.allocate(parts.shards.layout().piggyback().elements * sizeof(float))) {}

  const nn::Gradients& begin(Pass pass) override {
    first_pass_ = pass.first;
    return gradients_;
  }
  const nn::Gradients& gradients() const override { return gradients_; }
  void before_backward() override {
    rotation_.begin_backward();
    parts_.ddp.begin_backward(
        [this](int bucket, kernels::Stream& communication) { enqueue_sum(bucket, communication); });
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
  nn::Gradients gradients_;
  kernels::Buffer sums_;  // of this rank's shards, packed
  kernels::Buffer loss_;
  bool first_pass_ = true;
};

}  // namespace

std::unique_ptr<GradientReducer> make_sharded_reducer(const WireSpec& wire, const ReducerParts& parts) {
  return std::make_unique<ShardedReducer>(wire, parts);
}

}  // namespace gradring::train
