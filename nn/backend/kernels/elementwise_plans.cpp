// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "nn/layers/add.h"
#include "nn/layers/dropout.h"
#include "nn/layers/gelu.h"
#include "nn/layers/relu.h"
#include "nn/layers/scale.h"
#include "nn/layers/silu.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::pick_variant;
using kernels::Stream;

class ReluPlan final : public Plan {
 public:
  ReluPlan(const NodeSpec& node, const kernels::relu::Variant& relu)
      : dtype_(node.dtype), sample_elements_(node.output.with_batch(1).elements()), relu_(relu) {}

  std::string description() const override { return "relu/" + std::string(relu_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    relu_.forward(stream, {.dtype = dtype_, .x = pass.x, .y = pass.y, .elements = elements(pass.batch)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx) return;
    relu_.backward(stream,
                   {.dtype = dtype_, .y = pass.y, .dy = pass.dy, .dx = pass.dx, .elements = elements(pass.batch)});
  }

 private:
  std::size_t elements(std::int64_t batch) const { return static_cast<std::size_t>(batch * sample_elements_); }

  DType dtype_;
  std::int64_t sample_elements_;
  kernels::relu::Variant relu_;
};

/// An activation whose gradient needs its input: GELU, SiLU.
class SmoothActivationPlan final : public Plan {
 public:
  SmoothActivationPlan(std::string_view op, const NodeSpec& node, const kernels::activations::Variant& variant)
      : op_(op), dtype_(node.dtype), sample_elements_(node.output.with_batch(1).elements()), variant_(variant) {}

  std::string description() const override { return op_ + "/" + std::string(variant_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    variant_.forward(stream, {.dtype = dtype_, .x = pass.x, .y = pass.y, .elements = elements(pass.batch)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx) return;
    variant_.backward(stream,
                      {.dtype = dtype_, .x = pass.x, .dy = pass.dy, .dx = pass.dx, .elements = elements(pass.batch)});
  }

 private:
  std::size_t elements(std::int64_t batch) const { return static_cast<std::size_t>(batch * sample_elements_); }

  std::string op_;
  DType dtype_;
  std::int64_t sample_elements_;
  kernels::activations::Variant variant_;
};

class ScalePlan final : public Plan {
 public:
  ScalePlan(const NodeSpec& node, const kernels::scale::Variant& scale)
      : dtype_(node.dtype),
        sample_elements_(node.output.with_batch(1).elements()),
        factor_(std::get<Scale>(node.layer).factor),
        scale_(scale) {}

  std::string description() const override { return "scale/" + std::string(scale_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    enqueue(stream, pass.batch, pass.x, pass.y);
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (pass.dx) enqueue(stream, pass.batch, pass.dy, pass.dx);
  }

 private:
  void enqueue(Stream& stream, std::int64_t batch, const void* from, void* to) const {
    scale_.run(stream, {.dtype = dtype_,
                        .x = from,
                        .y = to,
                        .elements = static_cast<std::size_t>(batch * sample_elements_),
                        .factor = factor_});
  }

  DType dtype_;
  std::int64_t sample_elements_;
  float factor_;
  kernels::scale::Variant scale_;
};

/// Keeps nothing: the mask is drawn again in backward.
class DropoutPlan final : public Plan {
 public:
  DropoutPlan(const NodeSpec& node, const kernels::dropout::Variant& dropout)
      : dtype_(node.dtype),
        sample_elements_(node.output.with_batch(1).elements()),
        p_(std::get<Dropout>(node.layer).p),
        number_(node.number),
        dropout_(dropout) {}

  std::string description() const override { return "dropout/" + std::string(dropout_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    run(stream, pass.batch, pass.random, pass.x, pass.y);
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (pass.dx) run(stream, pass.batch, pass.random, pass.dy, pass.dx);
  }

 private:
  void run(Stream& stream, std::int64_t batch, const RandomKey& key, const void* from, void* to) const {
    dropout_.run(
        stream,
        {.dtype = dtype_,
         .samples = batch,
         .elements = sample_elements_,
         .x = from,
         .y = to,
         .p = p_,
         .draw = {.seed = key.seed, .layer = number_, .step = key.step, .first = key.first, .stride = key.stride}});
  }

  DType dtype_;
  std::int64_t sample_elements_;
  double p_;
  std::int64_t number_;
  kernels::dropout::Variant dropout_;
};

/// y may be x: a program also adds up gradients with this plan.
class AddPlan final : public Plan {
 public:
  AddPlan(const NodeSpec& node, const kernels::accumulate::Variant& accumulate)
      : dtype_(node.dtype), sample_elements_(node.output.with_batch(1).elements()), accumulate_(accumulate) {}

  std::string description() const override { return "accumulate/" + std::string(accumulate_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    if (pass.y != pass.x) stream.enqueue_copy(pass.y, pass.x, elements(pass.batch) * kernels::size_of(dtype_));
    accumulate_.run(stream, {.dtype = dtype_, .x = pass.residual, .y = pass.y, .elements = elements(pass.batch)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    for (void* gradient : {pass.dx, pass.dresidual})
      if (gradient) stream.enqueue_copy(gradient, pass.dy, elements(pass.batch) * kernels::size_of(dtype_));
  }

 private:
  std::size_t elements(std::int64_t batch) const { return static_cast<std::size_t>(batch * sample_elements_); }

  DType dtype_;
  std::int64_t sample_elements_;
  kernels::accumulate::Variant accumulate_;
};

}  // namespace

std::unique_ptr<Plan> KernelPlans::plan_of(const Relu&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<ReluPlan>(nodes[0], pick_variant(kernels_.relu, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Gelu&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<SmoothActivationPlan>("gelu", nodes[0], pick_variant(kernels_.gelu, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Silu&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<SmoothActivationPlan>("silu", nodes[0], pick_variant(kernels_.silu, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Scale&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<ScalePlan>(nodes[0], pick_variant(kernels_.scale, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Dropout&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<DropoutPlan>(nodes[0], pick_variant(kernels_.dropout, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Add&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<AddPlan>(nodes[0], pick_variant(kernels_.accumulate, device_, nodes[0].dtype));
}

}  // namespace gradring::nn
