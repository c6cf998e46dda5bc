// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/cpu_backend.h"

#include "kernels/runtime/error.h"
#include "kernels/variant.h"
#include "nn/backend/cpu/onednn.h"
#include "nn/backend/cpu/widened_plan.h"

namespace gradring::nn {
namespace {

const VariantChoice& checked(const VariantChoice& choice) {
  check_choice(choice, kernels::kernel_set(), CpuBackend::kLibrary, CpuBackend::kLibrary);
  const bool wanted = choice.conv == CpuBackend::kLibrary || choice.gemm == CpuBackend::kLibrary;
  if (wanted && !has_onednn()) throw InvalidArgument(describe_onednn());
  return choice;
}

/// What is left to our kernels: where the library is named, they take only what it does not plan.
VariantChoice ours(VariantChoice choice) {
  for (std::string* name : {&choice.conv, &choice.gemm})
    if (*name == CpuBackend::kLibrary) *name = kAuto;
  return choice;
}

}  // namespace

CpuBackend::CpuBackend(const kernels::Device& device, unsigned threads, const VariantChoice& choice)
    : choice_(checked(choice)),
      plans_(kernels::kernel_set(), device, ours(choice)),
      relu_(kernels::pick_variant(kernels::kernel_set().relu, device, kernels::DType::f32)),
      cast_(kernels::pick_variant(kernels::kernel_set().cast, device, kernels::DType::f32)) {
  if (threads > 0) set_onednn_threads(threads);
}

std::unique_ptr<Plan> CpuBackend::plan(std::span<const NodeSpec> nodes) {
  const bool conv = std::holds_alternative<Conv2d>(nodes.front().layer);
  const std::string& choice = conv ? choice_.conv : choice_.gemm;
  const bool forced = choice != kAuto && choice != kLibrary;  // one of ours, to be seen at work in any type
  if (forced || nodes.front().dtype == kernels::DType::f32) return plan_as_it_is(nodes, choice);
  std::vector<NodeSpec> wide(nodes.begin(), nodes.end());
  for (NodeSpec& node : wide) node.dtype = kernels::DType::f32;
  return std::make_unique<WidenedPlan>(plan_as_it_is(wide, choice), nodes, cast_);
}

// Two f32 layers are faster apart, where oneDNN computes the first. In 16 bits they are one as on a GPU, with its roundings.
std::unique_ptr<LossPlan> CpuBackend::plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) {
  if (spec.dtype != kernels::DType::f32 && choice_.gemm == kAuto)
    if (auto plan = plans_.plan_fused_loss(spec, last)) return plan;
  return plans_.plan_cross_entropy(spec);
}

std::unique_ptr<Plan> CpuBackend::plan_as_it_is(std::span<const NodeSpec> nodes, const std::string& choice) const {
  if (choice != kLibrary)
    if (auto plan = plans_.plan_fused(nodes)) return plan;
  if (choice == kAuto || choice == kLibrary)
    if (auto plan = plan_with_onednn(nodes, relu_)) return plan;
  return plans_.plan(nodes.front());
}

}  // namespace gradring::nn
