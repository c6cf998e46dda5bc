// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

#include <algorithm>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/folded_batch_norm.h"

namespace gradring::nn {
namespace {

constexpr std::string_view kPlainPrefix = "conv2d/";
constexpr std::string_view kFusedPrefix = "conv_relu_pool/";

template <class Variant>
bool has(std::span<const Variant> table, std::string_view name) {
  return std::ranges::any_of(table, [&](const Variant& variant) { return variant.name == name; });
}

bool names_conv(const std::string& conv, const kernels::KernelSet& kernels) {
  const std::string_view name = conv;
  if (name.starts_with(kPlainPrefix)) return has(kernels.conv2d, name.substr(kPlainPrefix.size()));
  if (name.starts_with(kFusedPrefix)) return has(kernels.conv_relu_pool, name.substr(kFusedPrefix.size()));
  return has(kernels.conv2d, name) || has(kernels.conv_relu_pool, name);
}

template <class Variant>
void add_names(std::vector<std::string_view>& names, std::span<const Variant> table) {
  for (const Variant& variant : table)
    if (std::ranges::find(names, variant.name) == names.end()) names.push_back(variant.name);
}

[[noreturn]] void throw_unknown(std::string_view option, const std::string& name,
                                std::span<const std::string_view> names) {
  throw InvalidArgument("--" + std::string(option) + ": " + kernels::no_such_variant(name, names));
}

[[noreturn]] void throw_unknown_conv(const std::string& name, const kernels::KernelSet& kernels,
                                     std::string_view library) {
  std::vector<std::string_view> names = {kAuto};
  if (library != kAuto) names.push_back(library);
  add_names(names, kernels.conv2d);
  add_names(names, kernels.conv_relu_pool);
  throw_unknown("conv", name, names);
}

using kernels::Device;
using kernels::DType;
using kernels::Stream;
namespace k = gradring::kernels;

/// A kernel entry that runs a reference function on the stream's host thread.
template <auto Reference, class Args>
void enqueue_reference(Stream& stream, const Args& args) {
  stream.enqueue([args] { Reference(args); });
}

std::size_t no_workspace(const k::conv2d::Geometry&) { return 0; }
bool on_cpu(const Device& device, DType) { return device.id().kind == kernels::DeviceKind::cpu; }

constexpr k::conv2d::Variant kConv2d[] = {{.name = "reference",
                                           .forward = enqueue_reference<k::conv2d::reference_forward>,
                                           .dgrad = enqueue_reference<k::conv2d::reference_dgrad>,
                                           .wgrad = enqueue_reference<k::conv2d::reference_wgrad>,
                                           .workspace_bytes = no_workspace,
                                           .supports = on_cpu}};
constexpr k::accumulate::Variant kAccumulate[] = {
    {.name = "reference", .run = enqueue_reference<k::accumulate::reference_run>, .supports = on_cpu}};
constexpr k::avg_pool2d::Variant kAvgPool2d[] = {{.name = "reference",
                                                  .forward = enqueue_reference<k::avg_pool2d::reference_forward>,
                                                  .backward = enqueue_reference<k::avg_pool2d::reference_backward>,
                                                  .supports = on_cpu}};
constexpr k::batch_norm::Variant kBatchNorm[] = {
    {.name = "reference",
     .statistics = enqueue_reference<k::batch_norm::reference_statistics>,
     .merge = enqueue_reference<k::batch_norm::reference_merge>,
     .from_running = enqueue_reference<k::batch_norm::reference_from_running>,
     .fold = enqueue_reference<k::batch_norm::reference_fold>,
     .normalize = enqueue_reference<k::batch_norm::reference_normalize>,
     .backward_sums = enqueue_reference<k::batch_norm::reference_backward_sums>,
     .backward = enqueue_reference<k::batch_norm::reference_backward>,
     .workspace_bytes = [](std::int64_t, std::int64_t) -> std::size_t { return 0; },
     .supports = on_cpu}};
constexpr k::dropout::Variant kDropout[] = {
    {.name = "reference", .run = enqueue_reference<k::dropout::reference_run>, .supports = on_cpu}};
constexpr k::gelu::Variant kGelu[] = {{.name = "reference",
                                       .forward = enqueue_reference<k::gelu::reference_forward>,
                                       .backward = enqueue_reference<k::gelu::reference_backward>,
                                       .supports = on_cpu}};
constexpr k::silu::Variant kSilu[] = {{.name = "reference",
                                       .forward = enqueue_reference<k::silu::reference_forward>,
                                       .backward = enqueue_reference<k::silu::reference_backward>,
                                       .supports = on_cpu}};
constexpr k::bias::Variant kBias[] = {{.name = "reference",
                                       .add = enqueue_reference<k::bias::reference_add>,
                                       .grad = enqueue_reference<k::bias::reference_grad>,
                                       .supports = on_cpu}};
constexpr k::relu::Variant kRelu[] = {{.name = "reference",
                                       .forward = enqueue_reference<k::relu::reference_forward>,
                                       .backward = enqueue_reference<k::relu::reference_backward>,
                                       .supports = on_cpu}};
constexpr k::scale::Variant kScale[] = {
    {.name = "reference", .run = enqueue_reference<k::scale::reference_run>, .supports = on_cpu}};
constexpr k::max_pool2d::Variant kMaxPool2d[] = {{.name = "reference",
                                                  .forward = enqueue_reference<k::max_pool2d::reference_forward>,
                                                  .backward = enqueue_reference<k::max_pool2d::reference_backward>,
                                                  .supports = on_cpu}};
constexpr k::gemm::Variant kGemm[] = {
    {.name = "reference", .run = enqueue_reference<k::gemm::reference_run>, .supports = on_cpu}};
constexpr k::softmax_cross_entropy::Variant kCrossEntropy[] = {
    {.name = "reference", .run = enqueue_reference<k::softmax_cross_entropy::reference_run>, .supports = on_cpu}};

kernels::KernelSet reference_kernels() {
  kernels::KernelSet set;
  set.conv2d = kConv2d;
  set.accumulate = kAccumulate;
  set.avg_pool2d = kAvgPool2d;
  set.batch_norm = kBatchNorm;
  set.dropout = kDropout;
  set.gelu = kGelu;
  set.silu = kSilu;
  set.grouped_conv2d = kConv2d;
  set.bias = kBias;
  set.relu = kRelu;
  set.scale = kScale;
  set.max_pool2d = kMaxPool2d;
  set.gemm = kGemm;
  set.softmax_cross_entropy = kCrossEntropy;
  return set;
}

}  // namespace

ConvChoice ConvChoice::of(const std::string& conv, const kernels::KernelSet& kernels) {
  if (conv == kAuto) return {};
  if (!names_conv(conv, kernels)) throw_unknown_conv(conv, kernels, kAuto);
  if (conv.starts_with(kPlainPrefix)) return {.plain = conv.substr(kPlainPrefix.size()), .fused = ""};
  if (conv.starts_with(kFusedPrefix)) return {.plain = std::string(kAuto), .fused = conv.substr(kFusedPrefix.size())};
  return {.plain = has(kernels.conv2d, conv) ? conv : std::string(kAuto),
          .fused = has(kernels.conv_relu_pool, conv) ? conv : ""};
}

void check_choice(const VariantChoice& choice, const kernels::KernelSet& kernels, std::string_view conv_library,
                  std::string_view gemm_library) {
  if (choice.conv != kAuto && choice.conv != conv_library && !names_conv(choice.conv, kernels))
    throw_unknown_conv(choice.conv, kernels, conv_library);
  if (choice.gemm == kAuto || choice.gemm == gemm_library || has(kernels.gemm, choice.gemm)) return;
  std::vector<std::string_view> names = {kAuto, gemm_library};
  add_names(names, kernels.gemm);
  throw_unknown("gemm", choice.gemm, names);
}

VariantChoice without_libraries(VariantChoice choice, std::string_view conv_library, std::string_view gemm_library) {
  if (choice.conv == conv_library) choice.conv = kAuto;
  if (choice.gemm == gemm_library) choice.gemm = kAuto;
  return choice;
}

std::unique_ptr<Plan> KernelBackend::plan(std::span<const NodeSpec> nodes) {
  if (const std::vector<NodeSpec> shorter = without_batch_norm(nodes); !shorter.empty())
    return plans_.plan_folded(nodes, plan(shorter));
  if (auto plan = plans_.plan_fused(nodes)) return plan;
  return plans_.plan(nodes);
}

ReferenceBackend::ReferenceBackend(const kernels::Device& device)
    : KernelBackend(reference_kernels(), device, "reference") {}

}  // namespace gradring::nn
