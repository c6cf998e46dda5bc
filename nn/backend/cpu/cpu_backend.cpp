// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/cpu_backend.h"

#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"
#include "nn/backend/cpu/onednn.h"
#include "nn/backend/kernels/folded_batch_norm.h"

namespace gradring::nn {
namespace {

using kernels::DType;

VariantChoice checked(VariantChoice choice) {
  check_choice(choice, kernels::kernel_set(), CpuBackend::kLibrary, CpuBackend::kLibrary);
  const bool wanted = choice.conv == CpuBackend::kLibrary || choice.gemm == CpuBackend::kLibrary;
  if (wanted && !has_onednn()) throw InvalidArgument(describe_onednn());
  return choice;
}

/// For vector loads and oneDNN.
constexpr std::size_t kAlignmentBytes = 64;

std::size_t elements_of_sample(const Shape& shape) { return static_cast<std::size_t>(shape.elements() / shape[0]); }

/// A plan for f16 or bf16 nodes on a CPU that computes in f32: widens the inputs, runs an f32 plan, rounds the outputs.
/// Values are rounded exactly where a GPU stores them, once per plan and tensor; products, sums and tensors inside a
/// fused plan are f32. The f32 copies are in the workspace.
class WidenedPlan final : public Plan {
 public:
  /// `inner` plans the first inner->nodes() of `nodes` in f32; `cast` must outlive the plan.
  WidenedPlan(std::unique_ptr<Plan> inner, std::span<const NodeSpec> nodes, const kernels::cast::Variant& cast)
      : inner_(std::move(inner)), dtype_(nodes.front().dtype), cast_(cast) {
    check(inner_->kept_bytes() == 0 && !inner_->has_statistics(),
          "a plan with statistics of the batch must compute in its own type");
    const NodeSpec& first = nodes.front();
    const NodeSpec& last = nodes[inner_->nodes() - 1];
    const std::int64_t batch = first.input[0];
    x_ = reserve(elements_of_sample(first.input), batch);
    dx_ = reserve(elements_of_sample(first.input), batch);
    y_ = reserve(elements_of_sample(last.output), batch);
    dy_ = reserve(elements_of_sample(last.output), batch);
    for (const NodeSpec& node : nodes.first(inner_->nodes()))
      for (const Parameter& parameter : parameters_of(node.layer, node.input))
        parameters_.push_back(reserve(static_cast<std::size_t>(parameter.shape.elements()), 1));
  }

  std::size_t nodes() const override { return inner_->nodes(); }
  std::size_t saved_bytes() const override { return inner_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return inner_offset_ + inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description() + ", in f32"; }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    const float* x = widen(stream, x_, pass.batch, pass.x, pass.workspace);
    const auto parameters = widen_parameters(stream, pass.parameters, pass.workspace);
    inner_->enqueue_forward(stream, {.batch = pass.batch,
                                     .x = x,
                                     .y = pass.workspace + y_.offset,
                                     .parameters = parameters,
                                     .buffers = pass.buffers,
                                     .saved = pass.saved,
                                     .workspace = pass.workspace + inner_offset_});
    round(stream, y_, pass.batch, pass.y, pass.workspace);
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    const float* x = widen(stream, x_, pass.batch, pass.x, pass.workspace);
    const float* y = widen(stream, y_, pass.batch, pass.y, pass.workspace);
    float* dy = widen(stream, dy_, pass.batch, pass.dy, pass.workspace);
    const auto parameters = widen_parameters(stream, pass.parameters, pass.workspace);
    inner_->enqueue_backward(stream, {.batch = pass.batch,
                                      .x = x,
                                      .y = y,
                                      .dy = dy,
                                      .dx = pass.dx ? pass.workspace + dx_.offset : nullptr,
                                      .parameters = parameters,
                                      .gradients = pass.gradients,
                                      .saved = pass.saved,
                                      .workspace = pass.workspace + inner_offset_});
    if (pass.dx) round(stream, dx_, pass.batch, pass.dx, pass.workspace);
  }

 private:
  /// A tensor's f32 copy in the workspace. For activations, `elements` is per sample.
  struct Wide {
    std::size_t offset = 0;
    std::size_t elements = 0;
  };
  Wide reserve(std::size_t elements, std::int64_t batch) {
    const std::size_t bytes = elements * static_cast<std::size_t>(batch) * sizeof(float);
    return {
        std::exchange(inner_offset_, inner_offset_ + (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes),
        elements};
  }

  float* widen(kernels::Stream& stream, const Wide& wide, std::int64_t batch, const void* from,
               std::byte* workspace) const {
    auto* to = reinterpret_cast<float*>(workspace + wide.offset);
    cast_.run(stream, {.from = dtype_,
                       .to = DType::f32,
                       .x = from,
                       .y = to,
                       .elements = wide.elements * static_cast<std::size_t>(batch)});
    return to;
  }

  void round(kernels::Stream& stream, const Wide& wide, std::int64_t batch, void* to, std::byte* workspace) const {
    cast_.run(stream, {.from = DType::f32,
                       .to = dtype_,
                       .x = workspace + wide.offset,
                       .y = to,
                       .elements = wide.elements * static_cast<std::size_t>(batch)});
  }

  std::vector<const void*> widen_parameters(kernels::Stream& stream, std::span<const void* const> parameters,
                                            std::byte* workspace) const {
    std::vector<const void*> wide;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      wide.push_back(widen(stream, parameters_[i], 1, parameters[i], workspace));
    return wide;
  }

  std::unique_ptr<Plan> inner_;
  kernels::DType dtype_;
  const kernels::cast::Variant& cast_;
  std::size_t inner_offset_ = 0;  // start of the inner plan's workspace
  Wide x_, y_, dx_, dy_;
  std::vector<Wide> parameters_;
};

}  // namespace

OnednnHelpers::OnednnHelpers(const kernels::Device& device)
    : relu(kernels::pick_variant(kernels::kernel_set().relu, device, DType::f32)),
      bias(kernels::pick_variant(kernels::kernel_set().bias, device, DType::f32)) {}

CpuBackend::CpuBackend(const kernels::Device& device, unsigned threads, const VariantChoice& choice)
    : choice_(checked(choice)),
      plans_(kernels::kernel_set(), device, without_libraries(choice, kLibrary, kLibrary)),
      helpers_(device),
      conv_(kernels::pick_variant(kernels::kernel_set().conv2d, device, kernels::DType::f32)),
      cast_(kernels::pick_variant(kernels::kernel_set().cast, device, kernels::DType::f32)) {
  set_onednn_threads(threads);
}

std::unique_ptr<Plan> CpuBackend::plan(std::span<const NodeSpec> nodes) {
  const bool conv = std::holds_alternative<Conv2d>(nodes.front().layer);
  const std::string& choice = conv ? choice_.conv : choice_.gemm;
  const bool forced = choice != kAuto && choice != kLibrary;  // one of our kernels, run in the nodes' own type
  // These kernels compute in f32 and round once anyhow.
  const Layer& first = nodes.front().layer;
  const bool widens = !std::holds_alternative<Add>(first) && !std::holds_alternative<BatchNorm2d>(first) &&
                      !std::holds_alternative<Scale>(first) && !std::holds_alternative<Dropout>(first);
  if (forced || !widens || nodes.front().dtype == kernels::DType::f32) return plan_in_dtype(nodes, choice);
  std::vector<NodeSpec> wide(nodes.begin(), nodes.end());
  for (NodeSpec& node : wide) node.dtype = kernels::DType::f32;
  return std::make_unique<WidenedPlan>(plan_in_dtype(wide, choice), nodes, cast_);
}

// In f32, oneDNN's product and a separate loss are faster. In 16 bits the two are fused as on a GPU, with its
// roundings.
std::unique_ptr<LossPlan> CpuBackend::plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) {
  if (spec.dtype != kernels::DType::f32 && choice_.gemm == kAuto)
    if (auto plan = plans_.plan_fused_loss(spec, last)) return plan;
  return plans_.plan_cross_entropy(spec);
}

std::unique_ptr<Plan> CpuBackend::plan_in_dtype(std::span<const NodeSpec> nodes, const std::string& choice) const {
  if (const std::vector<NodeSpec> shorter = without_batch_norm(nodes); !shorter.empty())
    return plans_.plan_folded(nodes, plan_in_dtype(shorter, choice));
  if (choice != kLibrary)
    if (auto plan = plans_.plan_fused(nodes)) return plan;
  if (choice == kAuto || choice == kLibrary)
    if (auto plan = plan_with_onednn(nodes, helpers_, choice == kAuto ? &conv_ : nullptr)) return plan;
  return plans_.plan(nodes);
}

}  // namespace gradring::nn
