// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

#include <algorithm>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/variant.h"
#include "nn/backend/kernels/layer_plans.h"

namespace gradring::nn {

using kernels::find_variant;
using kernels::pick_variant;

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
  std::vector<std::string_view> names = {kAuto, library};
  add_names(names, kernels.conv2d);
  add_names(names, kernels.conv_relu_pool);
  throw_unknown("conv", name, names);
}

/// The variant of that name, or the best one for auto.
template <class Variant>
const Variant& choose(std::span<const Variant> table, const std::string& name, const kernels::Device& device,
                      kernels::DType dtype) {
  if (name == kAuto) return pick_variant(table, device, dtype);
  const Variant& named = find_variant(table, name);
  if (named.supports(device, dtype)) return named;
  throw InvalidArgument("variant '" + name + "' does not support " + std::string(kernels::name_of(dtype)) + " on " +
                        device.id().to_string() + ": name another, or auto");
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

std::unique_ptr<Plan> KernelPlans::plan(const NodeSpec& node) const {
  const auto pick = [&](const auto& table, const std::string& name = std::string(kAuto)) {
    return choose(table, name, device_, node.dtype);
  };
  return std::visit(
      Overloaded{[&](const Conv2d&) {
                   return make_conv2d_plan(node, pick(kernels_.conv2d, conv_.plain), pick(kernels_.bias));
                 },
                 [&](const Linear&) { return make_linear_plan(node, pick(kernels_.gemm, gemm_), pick(kernels_.bias)); },
                 [&](const Relu&) { return make_relu_plan(node, pick(kernels_.relu)); },
                 [&](const MaxPool2d&) { return make_max_pool2d_plan(node, pick(kernels_.max_pool2d)); },
                 [&](const Flatten&) -> std::unique_ptr<Plan> {
                   throw InvalidArgument("a flatten node has no plan: programs leave it out");
                 }},
      node.layer);
}

std::unique_ptr<Plan> KernelPlans::plan_fused(std::span<const NodeSpec> nodes) const {
  if (conv_.fused.empty() || kernels_.conv_relu_pool.empty() || !fits_conv_relu_pool(nodes)) return nullptr;
  return make_conv_relu_pool_plan(nodes, choose(kernels_.conv_relu_pool, conv_.fused, device_, nodes[0].dtype));
}

std::unique_ptr<LossPlan> KernelPlans::plan_cross_entropy(const CrossEntropySpec& spec) const {
  return make_cross_entropy_plan(spec, pick_variant(kernels_.softmax_cross_entropy, device_, spec.dtype));
}

std::unique_ptr<LossPlan> KernelPlans::plan_fused_loss(const CrossEntropySpec& spec, const NodeSpec* last) const {
  if (!last || kernels_.linear_cross_entropy.empty() || !fits_linear_cross_entropy(spec, *last)) return nullptr;
  return make_linear_cross_entropy_plan(spec, *last, pick_variant(kernels_.linear_cross_entropy, device_, spec.dtype));
}

}  // namespace gradring::nn
