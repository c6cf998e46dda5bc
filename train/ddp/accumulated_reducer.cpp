// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/variant.h"
#include "train/ddp/gradient_reducer.h"

namespace gradring::train {
namespace {

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
        accumulate_(kernels::pick_variant(parts.kernels.accumulate, parts.device, kernels::DType::f32)),
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
    accumulate_.run(stream_, {.dtype = kernels::DType::f32,
                              .x = pass_.last ? sum : newest,
                              .y = pass_.last ? newest : sum,
                              .elements = elements});
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

std::unique_ptr<GradientReducer> make_accumulated_reducer(std::unique_ptr<GradientReducer> next,
                                                          const ReducerParts& parts) {
  return std::make_unique<AccumulatedReducer>(std::move(next), parts);
}

}  // namespace gradring::train
