// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/folded_batch_norm.h"

#include <array>
#include <utility>

#include "nn/backend/decorators.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"

namespace gradring::nn {
namespace {

using kernels::Stream;

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::int64_t fan_in(const Conv2d& conv) { return conv.kernel * conv.kernel * conv.in_channels / conv.groups; }

/// workspace: folded weights | folded bias | that of the inner plan
class FoldedBatchNorm final : public PlanDecorator {
 public:
  FoldedBatchNorm(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> inner,
                  const kernels::batch_norm::Variant& variant)
      : PlanDecorator(std::move(inner)),
        dtype_(nodes[0].dtype),
        conv_(std::get<Conv2d>(nodes[0].layer)),
        norm_(std::get<BatchNorm2d>(nodes[1].layer)),
        weight_bytes_(aligned(static_cast<std::size_t>(conv_.out_channels * fan_in(conv_)) * kernels::size_of(dtype_))),
        bias_bytes_(aligned(static_cast<std::size_t>(conv_.out_channels) * kernels::size_of(dtype_))),
        variant_(variant) {}

  std::size_t nodes() const override { return PlanDecorator::nodes() + 1; }
  std::size_t workspace_bytes() const override {
    return weight_bytes_ + bias_bytes_ + PlanDecorator::workspace_bytes();
  }
  std::string description() const override { return PlanDecorator::description() + ", batch_norm folded"; }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    std::byte* const folded_b = pass.workspace + weight_bytes_;
    const auto of_norm = pass.parameters.subspan(conv_.bias ? 2 : 1);
    variant_.fold(stream, {.dtype = dtype_,
                           .channels = conv_.out_channels,
                           .fan_in = fan_in(conv_),
                           .w = pass.parameters[0],
                           .b = conv_.bias ? pass.parameters[1] : nullptr,
                           .running_mean = pass.buffers[0],
                           .running_var = pass.buffers[1],
                           .eps = norm_.eps,
                           .weight = of_norm[0],
                           .bias = of_norm[1],
                           .folded_w = pass.workspace,
                           .folded_b = folded_b});
    const std::array<const void*, 2> folded = {pass.workspace, folded_b};
    ForwardPass inner = pass;
    inner.parameters = folded;
    inner.buffers = {};
    inner.workspace = folded_b + bias_bytes_;
    PlanDecorator::enqueue_forward(stream, inner);
  }

 private:
  kernels::DType dtype_;
  Conv2d conv_;
  BatchNorm2d norm_;
  std::size_t weight_bytes_;
  std::size_t bias_bytes_;
  kernels::batch_norm::Variant variant_;
};

}  // namespace

std::vector<NodeSpec> without_batch_norm(std::span<const NodeSpec> nodes) {
  const auto is = [&]<class L>(std::size_t i, const L&) {
    return i < nodes.size() && std::holds_alternative<L>(nodes[i].layer);
  };
  if (nodes[0].trains || !is(0, Conv2d{}) || !is(1, BatchNorm2d{}) || is(2, Add{})) return {};
  std::vector<NodeSpec> folded(nodes.begin(), nodes.end());
  auto& conv = std::get<Conv2d>(folded[0].layer);
  if (conv.out_channels * fan_in(conv) > nodes[0].output.elements()) return {};
  conv.bias = true;
  folded.erase(folded.begin() + 1);
  return folded;
}

std::unique_ptr<Plan> fold_batch_norm(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> inner,
                                      const kernels::batch_norm::Variant& variant) {
  return std::make_unique<FoldedBatchNorm>(nodes, std::move(inner), variant);
}

}  // namespace gradring::nn
