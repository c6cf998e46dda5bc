// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/accumulate/accumulate.h"
#include "kernels/runtime/device.h"
#include "train/parallel/gradient_path.h"

namespace gradring::train {

/// Sums the passes of a window on this rank first, so that the ranks exchange gradients once a step: PyTorch's no_sync.
///
///   first pass    writes the sums
///   later ones    write where `next` reads; each tensor, as soon as it is ready, is added to the sums
///   last pass     writes there, too; the sums are added to each tensor, which goes on to `next`
///
/// Memory    an arena of gradients.
/// Numerics  sums in f32, in the order of the passes; a window of one pass is untouched.
/// Threads   that of the trainer. What is given must outlive it.
class GradientAccumulation final : public GradientPath {
 public:
  struct Parts {
    kernels::Device& device;
    kernels::Stream& stream;
    nn::Gradients places;  ///< where passes but the first of several write: what `next` returns from begin
    kernels::accumulate::Variant accumulate;
  };
  /// `next` hears of the window's last pass alone, as if it were the only one.
  GradientAccumulation(const Parts& parts, std::unique_ptr<GradientPath> next);

  const nn::Gradients& begin(Pass pass) override;
  void scaled_by(const float* loss_scale) override { next_->scaled_by(loss_scale); }
  void enqueue_end() override;

  void before_forward() override {}
  void before_backward() override;
  void weights_needed(std::span<const int>) override {}
  void gradients_begin(std::span<const int> parameters) override;
  void gradient_ready(int parameter) override;

 private:
  void enqueue_add(int parameter);
  void enqueue_add_riders();
  /// Into the sums, or, in the last pass, of the sums into what goes on.
  void enqueue_add(float* newest, float* sum, std::size_t elements);

  Parts parts_;
  std::unique_ptr<GradientPath> next_;
  kernels::Buffer memory_;
  nn::Gradients sums_;
  Pass pass_;
  bool riders_added_ = false;  // in this pass
};

}  // namespace gradring::train
