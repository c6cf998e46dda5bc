// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {
namespace {

using kernels::pick_variant;
using kernels::Stream;

kernels::softmax_cross_entropy::SoftTargets soft_targets_of(const SoftLabels& soft) {
  return {.labels_b = soft.labels_b, .weights_b = soft.weights_b, .label_smoothing = soft.label_smoothing};
}

class CrossEntropyPlan final : public LossPlan {
 public:
  CrossEntropyPlan(const CrossEntropySpec& spec, const kernels::softmax_cross_entropy::Variant& kernel)
      : spec_(spec), kernel_(kernel) {}

  std::size_t nodes() const override { return 0; }
  std::size_t workspace_bytes() const override { return kernels::softmax_cross_entropy::workspace_bytes(spec_.rows); }
  std::string description() const override { return "softmax_cross_entropy/" + std::string(kernel_.name); }

  void enqueue(Stream& stream, const LossPass& pass) override {
    kernel_.run(stream, {.dtype = spec_.dtype,
                         .rows = pass.rows,
                         .classes = spec_.classes,
                         .logits = pass.x,
                         .labels = pass.labels,
                         .soft = soft_targets_of(pass.soft),
                         .scale = pass.scale,
                         .loss_scale = pass.loss_scale,
                         .dlogits = pass.dx,
                         .loss_sum = pass.loss_sum,
                         .correct = pass.correct,
                         .workspace = pass.workspace});
  }

 private:
  CrossEntropySpec spec_;
  kernels::softmax_cross_entropy::Variant kernel_;
};

/// The last linear layer, softmax, cross-entropy and all gradients in one kernel: the logits' gradient is not rounded.
class LinearCrossEntropyPlan final : public LossPlan {
 public:
  LinearCrossEntropyPlan(const CrossEntropySpec& spec, const NodeSpec& last,
                         const kernels::linear_cross_entropy::Variant& kernel)
      : spec_(spec), layer_(std::get<Linear>(last.layer)), kernel_(kernel) {}

  std::size_t nodes() const override { return 1; }
  std::size_t workspace_bytes() const override {
    return kernels::linear_cross_entropy::workspace_bytes(spec_.rows, layer_.in_features, spec_.classes);
  }
  std::size_t partial_sum_bytes() const override { return workspace_bytes(); }
  std::string description() const override { return "linear_cross_entropy/" + std::string(kernel_.name); }

  void enqueue(Stream& stream, const LossPass& pass) override {
    const bool trains = pass.dx != nullptr;
    kernel_.run(stream, {.dtype = spec_.dtype,
                         .rows = pass.rows,
                         .in = layer_.in_features,
                         .classes = spec_.classes,
                         .h = pass.x,
                         .w = pass.parameters[0],
                         .b = pass.parameters[1],
                         .labels = pass.labels,
                         .soft = soft_targets_of(pass.soft),
                         .scale = pass.scale,
                         .loss_scale = pass.loss_scale,
                         .logits = pass.logits,
                         .dh = pass.dx,
                         .h_is_relu = pass.x_is_relu,
                         .dw = trains ? pass.gradients[0] : nullptr,
                         .db = trains ? pass.gradients[1] : nullptr,
                         .loss_sum = pass.loss_sum,
                         .correct = pass.correct,
                         .arrivals = pass.arrivals,
                         .workspace = pass.partial_sums.workspace_or(pass.workspace),
                         .partial_sums = pass.partial_sums.list});
  }

 private:
  CrossEntropySpec spec_;
  Linear layer_;
  kernels::linear_cross_entropy::Variant kernel_;
};

/// Whether `last` is a linear layer to few enough classes for the fused kernel.
bool fits_linear_cross_entropy(const CrossEntropySpec& spec, const NodeSpec& last) {
  const auto* const linear = std::get_if<Linear>(&last.layer);
  return linear && linear->bias && last.dtype == spec.dtype &&
         spec.classes <= kernels::linear_cross_entropy::kMostClasses;
}

}  // namespace

std::unique_ptr<LossPlan> KernelPlans::plan_cross_entropy(const CrossEntropySpec& spec) const {
  return std::make_unique<CrossEntropyPlan>(spec, pick_variant(kernels_.softmax_cross_entropy, device_, spec.dtype));
}

std::unique_ptr<LossPlan> KernelPlans::plan_fused_loss(const CrossEntropySpec& spec, const NodeSpec* last) const {
  if (!last || kernels_.linear_cross_entropy.empty() || !fits_linear_cross_entropy(spec, *last)) return nullptr;
  return std::make_unique<LinearCrossEntropyPlan>(spec, *last,
                                                  pick_variant(kernels_.linear_cross_entropy, device_, spec.dtype));
}

}  // namespace gradring::nn
