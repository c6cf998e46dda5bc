// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "kernels/runtime/error.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

struct NamedModel {
  std::string_view name;
  Model (*make)(const Shape& sample, std::int64_t classes);
};

constexpr std::array kModels = {NamedModel{"convnet", convnet}, NamedModel{"convnet-deep", convnet_deep}};

constexpr auto kNames = [] {
  std::array<std::string_view, kModels.size()> names;
  std::ranges::transform(kModels, names.begin(), &NamedModel::name);
  return names;
}();

}  // namespace

std::span<const std::string_view> model_names() { return kNames; }

Model make_model(std::string_view name, const Shape& sample, std::int64_t classes) {
  const auto* const found = std::ranges::find(kModels, name, &NamedModel::name);
  if (found != kModels.end()) return found->make(sample, classes);
  std::string known;
  for (const std::string_view each : kNames) known += (known.empty() ? "" : ", ") + std::string(each);
  throw InvalidArgument("there is no model '" + std::string(name) + "': the models are " + known);
}

}  // namespace gradring::nn
