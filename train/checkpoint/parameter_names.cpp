// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/parameter_names.h"

#include <variant>

#include "train/checkpoint/error.h"

namespace gradring::train {

ParameterNames::ParameterNames(const nn::Model& model) {
  int convolutions = 0, linears = 0;
  for (std::size_t place = 0; place < model.layers.size(); ++place) {
    const auto& [name, layer] = model.layers[place];
    std::string attribute;
    if (std::holds_alternative<nn::Conv2d>(layer)) attribute = "conv" + std::to_string(++convolutions);
    if (std::holds_alternative<nn::Linear>(layer)) attribute = "fc" + std::to_string(++linears);
    if (attribute.empty()) continue;
    for (const char* parameter : {".weight", ".bias"})
      for (const std::string& spelling : {name, attribute, std::to_string(place)})
        own_.emplace(spelling + parameter, name + parameter);
  }
}

std::optional<std::string> ParameterNames::own(std::string_view name) const {
  for (bool stripped = true; stripped;) {
    stripped = false;
    for (std::string_view wrapper : {"module.", "_orig_mod."})
      if (name.starts_with(wrapper)) {
        name.remove_prefix(wrapper.size());
        stripped = true;
      }
  }
  const auto found = own_.find(name);
  if (found == own_.end()) return std::nullopt;
  return found->second;
}

void ParameterNames::rename(std::vector<TensorRecord>& tensors, const std::filesystem::path& path) const {
  std::map<std::string, std::string> taken;  // by whom
  for (TensorRecord& tensor : tensors) {
    const auto name = own(tensor.name);
    if (!name) continue;
    const auto [earlier, is_new] = taken.emplace(*name, tensor.name);
    if (!is_new)
      throw CheckpointError(
          path,
          "has " + in_quotes(*name) + " twice, as " + in_quotes(earlier->second) + " and as " + in_quotes(tensor.name),
          "keep one of them");
    tensor.name = *name;
  }
}

}  // namespace gradring::train
