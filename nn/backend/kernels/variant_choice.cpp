// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/variant_choice.h"

#include <algorithm>

#include "kernels/runtime/error.h"
#include "kernels/variant.h"

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

[[noreturn]] void refuse(std::string_view option, const std::string& name, std::span<const std::string_view> names) {
  throw InvalidArgument("--" + std::string(option) + ": " + kernels::no_such_variant(name, names));
}

[[noreturn]] void refuse_conv(const std::string& name, const kernels::KernelSet& kernels, std::string_view library) {
  std::vector<std::string_view> names = {kAuto, library};
  add_names(names, kernels.conv2d);
  add_names(names, kernels.conv_relu_pool);
  refuse("conv", name, names);
}

}  // namespace

ConvChoice ConvChoice::of(const std::string& conv, const kernels::KernelSet& kernels) {
  if (conv == kAuto) return {};
  if (!names_conv(conv, kernels)) refuse_conv(conv, kernels, kAuto);
  if (conv.starts_with(kPlainPrefix)) return {.plain = conv.substr(kPlainPrefix.size()), .fused = ""};
  if (conv.starts_with(kFusedPrefix)) return {.plain = std::string(kAuto), .fused = conv.substr(kFusedPrefix.size())};
  return {.plain = has(kernels.conv2d, conv) ? conv : std::string(kAuto),
          .fused = has(kernels.conv_relu_pool, conv) ? conv : ""};
}

void check_choice(const VariantChoice& choice, const kernels::KernelSet& kernels, std::string_view conv_library,
                  std::string_view gemm_library) {
  if (choice.conv != kAuto && choice.conv != conv_library && !names_conv(choice.conv, kernels))
    refuse_conv(choice.conv, kernels, conv_library);
  if (choice.gemm == kAuto || choice.gemm == gemm_library || has(kernels.gemm, choice.gemm)) return;
  std::vector<std::string_view> names = {kAuto, gemm_library};
  add_names(names, kernels.gemm);
  refuse("gemm", choice.gemm, names);
}

}  // namespace gradring::nn
