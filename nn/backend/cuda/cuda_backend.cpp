// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cuda_backend.h"

#include <algorithm>

#include "kernels/base/error.h"
#include "nn/backend/kernels/folded_batch_norm.h"

namespace gradring::nn {
namespace {

VariantChoice checked(const CudaBackendOptions& options, const kernels::KernelSet& kernels) {
  const VariantChoice choice{.conv = options.conv, .gemm = options.gemm};
  check_choice(choice, kernels, CudaBackend::kConvLibrary, CudaBackend::kGemmLibrary);
  return choice;
}

/// Opens a library if `choice`, the value of `option`, allows it; if it fails, throws where the library is named, else
/// returns null.
template <class Open>
auto opened(std::string_view option, const std::string& choice, std::string_view library, const std::string& without,
            const CudaBackendOptions& options, const Open& open) -> decltype(open()) {
  if (choice != kAuto && choice != library) return nullptr;
  if (!options.has_libraries && choice == library)
    throw InvalidArgument(std::string(option) + " " + std::string(library) +
                          " is not simulated: a simulated GPU executes our own kernels; choose one of them, or auto");
  if (!options.has_libraries) return nullptr;
  try {
    return open();
  } catch (const DeviceError& error) {
    if (choice == library) throw;
    options.say(without + " (" + error.what() + ")");
    return nullptr;
  }
}

CudaLibraries open_libraries(const VariantChoice& choice, kernels::Device& device, const CudaBackendOptions& options) {
  return {.cudnn = opened("--conv", choice.conv, CudaBackend::kConvLibrary,
                          "no cuDNN: our own kernels compute every convolution", options,
                          [&] { return open_cudnn(device, options); }),
          .cublas = opened("--gemm", choice.gemm, CudaBackend::kGemmLibrary,
                           "no cuBLAS: our own kernels compute every product", options,
                           [&] { return std::make_shared<CublasLt>(CublasLtApi::load(), device); })};
}

[[noreturn]] void throw_unsupported(const NodeSpec& node, std::string_view library, std::string_view option) {
  throw InvalidArgument(std::string(library) + " cannot compute " + std::string(kind_of(node.layer)) + " of " +
                        node.input.to_string() + " in " + std::string(kernels::name_of(node.dtype)) +
                        ": name another with " + std::string(option) + ", or auto");
}

}  // namespace

CudaBackend::CudaBackend(const kernels::KernelSet& kernels, kernels::Device& device, const CudaBackendOptions& options)
    : CudaBackend(kernels, device, options, open_libraries(checked(options, kernels), device, options)) {}

CudaBackend::CudaBackend(const kernels::KernelSet& kernels, kernels::Device& device, const CudaBackendOptions& options,
                         CudaLibraries libraries)
    : kernels_(kernels),
      device_(device),
      choice_(checked(options, kernels)),
      plans_(kernels, device, without_libraries(choice_, kConvLibrary, kGemmLibrary)),
      libraries_(std::move(libraries)),
      plan_choice_(device, options) {}

std::unique_ptr<Plan> CudaBackend::plan(std::span<const NodeSpec> nodes) {
  if (std::holds_alternative<Conv2d>(nodes.front().layer)) return plan_convolution(nodes);
  if (std::holds_alternative<Linear>(nodes.front().layer)) return plan_product(nodes);
  return plans_.plan(nodes);
}

// The fused kernel computes on tensor cores, of which f32 has none: there a library, or tiles layer by layer, is faster.
bool CudaBackend::fuses(kernels::DType dtype) const {
  return choice_.conv == kAuto ? dtype != kernels::DType::f32 : choice_.conv != kConvLibrary;
}

std::unique_ptr<Plan> CudaBackend::library_plan(std::span<const NodeSpec> nodes) const {
  const NodeSpec& node = nodes.front();
  const bool is_product = std::holds_alternative<Linear>(node.layer);
  if (is_product && libraries_.cublas)
    return plan_cublaslt_linear(nodes, libraries_.cublas, HelperKernels::pick(kernels_, device_, node.dtype));
  if (!is_product && libraries_.cudnn)
    return plan_cudnn_conv2d(nodes, libraries_.cudnn, HelperKernels::pick(kernels_, device_, node.dtype));
  return nullptr;
}

std::vector<std::unique_ptr<Plan>> CudaBackend::all_plans(std::span<const NodeSpec> nodes) const {
  std::vector<std::unique_ptr<Plan>> plans;
  const auto add = [&plans](std::unique_ptr<Plan> plan) {
    if (plan) plans.push_back(std::move(plan));
  };
  /// Calls visit(name) for the variants of a table that auto may choose.
  const auto for_each_name = [&](auto table, const auto& visit) {
    for (std::size_t i = table.size(); i-- > 0;)
      if (table[i].supports(device_, nodes.front().dtype)) visit(std::string(table[i].name));
  };
  add(library_plan(nodes));
  if (std::holds_alternative<Linear>(nodes.front().layer)) {
    for_each_name(kernels_.gemm,
                  [&](const std::string& name) { add(KernelPlans(kernels_, device_, {.gemm = name}).plan(nodes)); });
    return plans;
  }
  for_each_name(kernels_.conv_relu_pool, [&](const std::string& name) {
    add(KernelPlans(kernels_, device_, {.conv = "conv_relu_pool/" + name}).plan_fused(nodes));
  });
  for_each_name(kernels_.conv2d, [&](const std::string& name) {
    add(KernelPlans(kernels_, device_, {.conv = "conv2d/" + name}).plan(nodes));
  });
  return plans;
}

std::unique_ptr<Plan> CudaBackend::fastest(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> preferred) {
  std::vector<PlanChain> chains(1);
  chains[0].push_back(std::move(preferred));
  for (std::unique_ptr<Plan>& plan : all_plans(nodes)) {
    const std::string name = plan->description();
    if (std::ranges::none_of(chains, [&](const PlanChain& chain) { return chain.front()->description() == name; }))
      chains.emplace_back().push_back(std::move(plan));
  }
  std::size_t most = 0;  // nodes of one plan: the others compute the rest of them by further plans
  for (const PlanChain& chain : chains) most = std::max(most, chain.front()->nodes());
  for (PlanChain& chain : chains)
    for (std::size_t done = chain.front()->nodes(); done < most; done += chain.back()->nodes())
      chain.push_back(plans_.plan(nodes.first(most).subspan(done)));
  return std::move(chains[plan_choice_.choose(nodes.first(most), chains)].front());
}

std::unique_ptr<Plan> CudaBackend::plan_convolution(std::span<const NodeSpec> nodes) {
  if (const std::vector<NodeSpec> shorter = without_batch_norm(nodes); !shorter.empty())
    return plans_.plan_folded(nodes, plan_convolution(shorter));
  auto preferred = preferred_convolution(nodes);
  const bool chooses =
      plan_choice_.is_active() && choice_.conv == kAuto && std::get<Conv2d>(nodes.front().layer).groups == 1;
  return chooses ? fastest(nodes, std::move(preferred)) : std::move(preferred);
}

std::unique_ptr<Plan> CudaBackend::preferred_convolution(std::span<const NodeSpec> nodes) {
  const NodeSpec& node = nodes.front();
  if (fuses(node.dtype))
    if (auto plan = plans_.plan_fused(nodes)) return plan;
  const auto& layer = std::get<Conv2d>(node.layer);
  // Depthwise, cuDNN converts to dense weights (docs/results/cudnn.md) where our kernels read each value once.
  const bool is_depthwise = layer.groups > 1 && layer.groups == layer.in_channels && layer.groups == layer.out_channels;
  if (libraries_.cudnn && (!is_depthwise || choice_.conv == kConvLibrary)) {
    if (auto plan = library_plan(nodes)) return plan;
    if (choice_.conv == kConvLibrary) throw_unsupported(node, kConvLibrary, "--conv");
  }
  return plans_.plan(nodes);
}

std::unique_ptr<LossPlan> CudaBackend::plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) {
  if (choice_.gemm == kAuto)
    if (auto plan = plans_.plan_fused_loss(spec, last); plan && plan_choice_.allows(*last, plan->description()))
      return plan;
  return plans_.plan_cross_entropy(spec);
}

std::unique_ptr<Plan> CudaBackend::plan_product(std::span<const NodeSpec> nodes) {
  auto preferred = preferred_product(nodes);
  const bool chooses = plan_choice_.is_active() && choice_.gemm == kAuto;
  return chooses ? fastest(nodes, std::move(preferred)) : std::move(preferred);
}

std::unique_ptr<Plan> CudaBackend::preferred_product(std::span<const NodeSpec> nodes) {
  if (auto plan = library_plan(nodes)) return plan;
  if (libraries_.cublas && choice_.gemm == kGemmLibrary) throw_unsupported(nodes.front(), kGemmLibrary, "--gemm");
  return plans_.plan(nodes);
}

}  // namespace gradring::nn
