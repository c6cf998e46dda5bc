// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/error.h"
#include "kernels/variant.h"
#include "train/ddp/gradient_reducer.h"

namespace gradring::train {
namespace {

/// Every rank gets all sums, in the memory that backward wrote.
class ReplicatedReducer final : public GradientReducer {
 public:
  ReplicatedReducer(const WireSpec& wire, const ReducerParts& parts)
      : parts_(parts),
        reduction_(wire, {.group = parts.group,
                          .gradients = parts.gradients,
                          .shards = parts.shards,
                          .cast = kernels::pick_variant(parts.kernels.cast, parts.device, wire.dtype)}),
        gradients_(gradients_within(parts.gradients, reduction_.loss_slot())) {}

  const nn::Gradients& begin(Pass pass) override {
    check(pass.first && pass.last, "a step has several passes, but its gradients are not accumulated");
    return gradients_;
  }
  const nn::Gradients& gradients() const override { return gradients_; }
  void before_backward() override {
    parts_.ddp.begin_backward(
        [this](int bucket, kernels::Stream& communication) { reduction_.enqueue_sum(bucket, communication); });
  }
  void gradient_ready(int parameter) override { parts_.ddp.gradient_ready(parameter); }
  void enqueue_end() override { parts_.ddp.enqueue_join(); }

  ShardPointers sums() const override { return shards_within(parts_.shards, parts_.gradients); }
  const float* loss_sum() const override { return reduction_.loss_slot(); }
  ReducerBytes bytes() const override { return {.wire = reduction_.bytes()}; }

 private:
  ReducerParts parts_;
  BucketReduction reduction_;
  nn::Gradients gradients_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_replicated_reducer(const WireSpec& wire, const ReducerParts& parts) {
  return std::make_unique<ReplicatedReducer>(wire, parts);
}

}  // namespace gradring::train
