// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cast/cast.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

/// A plan for f16 or bf16 nodes on a processor that computes in f32: what the pass reads is widened, an f32 plan runs, and
/// what it writes is rounded. So values are rounded exactly where a GPU stores them, once per plan and tensor, and
/// everything between is f32: products, sums, what a fused plan keeps to itself.
///
/// Traffic   each tensor once more, in both types.
/// Memory    the f32 copies are workspace, lent for one pass.
class WidenedPlan final : public Plan {
 public:
  /// `inner` plans the first inner->nodes() of `nodes` in f32; `cast` must outlive the plan.
  WidenedPlan(std::unique_ptr<Plan> inner, std::span<const NodeSpec> nodes, const kernels::cast::Variant& cast);

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return inner_offset_ + inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description() + ", in f32"; }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  /// A tensor's f32 copy in the workspace. Those of activations are `elements` a sample.
  struct Wide {
    std::size_t offset = 0;
    std::size_t elements = 0;
  };
  Wide reserve(std::size_t elements, std::int64_t batch);
  float* widen(kernels::Stream& stream, const Wide& wide, std::int64_t batch, const void* from,
               std::byte* workspace) const;
  void round(kernels::Stream& stream, const Wide& wide, std::int64_t batch, void* to, std::byte* workspace) const;
  std::vector<const void*> widen_parameters(kernels::Stream& stream, std::span<const void* const> parameters,
                                            std::byte* workspace) const;

  std::unique_ptr<Plan> inner_;
  kernels::DType dtype_;
  const kernels::cast::Variant& cast_;
  std::size_t inner_offset_ = 0;  // where the workspace of the inner plan begins
  Wide x_, y_, dx_, dy_;
  std::vector<Wide> parameters_;
};

}  // namespace gradring::nn
