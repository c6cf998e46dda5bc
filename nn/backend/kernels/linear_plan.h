// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/bias/bias.h"
#include "kernels/gemm/gemm.h"
#include "nn/backend/backend.h"
#include "nn/backend/kernels/single_node_plan.h"

namespace gradring::nn {

/// y = x w^T + b by one product and one bias kernel; backward is two products.
class LinearPlan final : public SingleNodePlan {
 public:
  LinearPlan(const NodeSpec& node, const kernels::gemm::Variant& gemm, const kernels::bias::Variant& bias)
      : dtype_(node.dtype), layer_(std::get<Linear>(node.layer)), gemm_(gemm), bias_(bias) {}

  std::size_t workspace_bytes() const override { return gemm_.workspace_bytes; }
  std::string description() const override { return "gemm/" + std::string(gemm_.name); }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  kernels::DType dtype_;
  Linear layer_;
  kernels::gemm::Variant gemm_;
  kernels::bias::Variant bias_;
};

}  // namespace gradring::nn
