// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "nn/backend/backend.h"

namespace gradring::nn {

/// Base of plans that add something to another plan, such as its time: what a derived class does not override is the
/// other plan's.
class PlanDecorator : public Plan {
 public:
  explicit PlanDecorator(std::unique_ptr<Plan> inner) : inner_(std::move(inner)) {}

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t kept_bytes() const override { return inner_->kept_bytes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::size_t partial_sum_bytes() const override { return inner_->partial_sum_bytes(); }
  bool has_statistics() const override { return inner_->has_statistics(); }
  bool reads(kernels::DType x_dtype) const override { return inner_->reads(x_dtype); }
  std::string description() const override { return inner_->description(); }
  void enqueue_statistics(kernels::Stream& stream, const ForwardPass& pass) override {
    inner_->enqueue_statistics(stream, pass);
  }
  void enqueue_sums(kernels::Stream& stream, const BackwardPass& pass) override { inner_->enqueue_sums(stream, pass); }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    inner_->enqueue_forward(stream, pass);
  }
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    inner_->enqueue_backward(stream, pass);
  }

 private:
  std::unique_ptr<Plan> inner_;
};

/// The same for losses.
class LossPlanDecorator : public LossPlan {
 public:
  explicit LossPlanDecorator(std::unique_ptr<LossPlan> inner) : inner_(std::move(inner)) {}

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::size_t partial_sum_bytes() const override { return inner_->partial_sum_bytes(); }
  std::string description() const override { return inner_->description(); }
  void enqueue(kernels::Stream& stream, const LossPass& pass) override { inner_->enqueue(stream, pass); }

 private:
  std::unique_ptr<LossPlan> inner_;
};

/// The same for backends, to decorate their plans. `inner` must outlive it.
class BackendDecorator : public Backend {
 public:
  explicit BackendDecorator(Backend& inner) : inner_(inner) {}

  std::string_view name() const override { return inner_.name(); }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override { return inner_.plan(nodes); }
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) override {
    return inner_.plan_cross_entropy(spec, last);
  }

 private:
  Backend& inner_;
};

}  // namespace gradring::nn
