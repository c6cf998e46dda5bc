// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gradring/model.h>

#include "nn/models/model.h"
#include "train/app/api/api_call.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"

namespace gradring {
inline namespace v1 {

LayerValue::LayerValue(double value) : toml_(fmt::format("{}", value)) {
  if (toml_.find_first_not_of("-0123456789") == std::string::npos) toml_ += ".0";  // else TOML reads an integer
}
LayerValue::LayerValue(const char* text) : LayerValue(std::string(text)) {}
LayerValue::LayerValue(const std::string& text) : toml_(train::quoted(text)) {}
LayerValue::LayerValue(const std::vector<std::string>& names) {
  for (const std::string& name : names) toml_ += (toml_.empty() ? "[" : ", ") + train::quoted(name);
  toml_ += names.empty() ? "[]" : "]";
}

Model Model::built_in(std::string_view name) {
  Model model;
  train::api::run_api_call([&] { model.name_ = nn::built_in(name).name; });
  model.source_ = Source::built_in;
  return model;
}

Model Model::from_toml(std::string text, std::string name) {
  Model model;
  model.source_ = Source::text;
  model.name_ = std::move(name);
  model.text_ = std::move(text);
  return model;
}

Model Model::from_file(const std::string& path) {
  std::string text;
  train::api::run_api_call([&] { text = train::read_model_file(path); });
  return from_toml(std::move(text), path);
}

Model& Model::add(std::string_view kind, std::string_view name, Keys keys) {
  train::api::run_api_call([&] {
    if (source_ != Source::layers)
      throw InvalidArgument(fmt::format("layer {} cannot be added to {}, which is {}: add layers to Model()", name,
                                        name_, source_ == Source::text ? "a text" : "built in"));
  });
  text_ += fmt::format("  {{ {} = {}", kind, train::quoted(std::string(name)));
  for (const auto& [key, value] : keys) text_ += fmt::format(", {} = {}", key, value.toml());
  text_ += " },\n";
  return *this;
}

std::string Model::toml() const { return source_ == Source::layers ? "layers = [\n" + text_ + "]\n" : text_; }

}  // namespace v1
}  // namespace gradring
