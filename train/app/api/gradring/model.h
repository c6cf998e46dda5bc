// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradring {
inline namespace v1 {

/// A value of a layer: an integer, a number, true or false, text (an expression such as "2 * in"), or a list of names.
class LayerValue {
 public:
  template <std::integral Number>
  LayerValue(Number value)  // NOLINT(google-explicit-constructor)
  {
    if constexpr (std::same_as<Number, bool>)
      toml_ = value ? "true" : "false";
    else
      toml_ = std::to_string(value);
  }
  LayerValue(double value);                           // NOLINT(google-explicit-constructor)
  LayerValue(const char* text);                       // NOLINT(google-explicit-constructor)
  LayerValue(const std::string& text);                // NOLINT(google-explicit-constructor)
  LayerValue(const std::vector<std::string>& names);  // NOLINT(google-explicit-constructor)

  /// As it stands in a model file.
  const std::string& toml() const { return toml_; }

 private:
  std::string toml_;
};

/// The layers of a network, without weights. The images and the classes are those of the data set, so one model fits
/// several. Errors of its layers are found by fit() and evaluate(), which know the shapes.
class Model {
 public:
  using Keys = std::initializer_list<std::pair<std::string_view, LayerValue>>;

  /// A model without layers, for add().
  Model() = default;
  /// A model of gradring: "convnet", "resnet18", ... (docs/models.md).
  static Model built_in(std::string_view name);
  /// A model in TOML, as docs/models.md describes it. Messages name it `name`, with the line.
  static Model from_toml(std::string text, std::string name = "model");
  /// The same from a file.
  ///
  /// Errors    Error if it cannot be read.
  static Model from_file(const std::string& path);

  /// Adds a layer, with the kinds and keys of a model file; it reads the layer before it, or those of the key "inputs".
  ///
  /// Errors    Error if the model is built in, or from TOML.
  /// Example   model.add("conv2d", "conv1", {{"out", 16}, {"kernel", 3}, {"padding", 1}}).add("relu", "relu1");
  Model& add(std::string_view kind, std::string_view name, Keys keys = {});

  /// As a model file; empty for a model that is built in.
  std::string toml() const;
  const std::string& name() const { return name_; }

 private:
  enum class Source { layers, text, built_in };

  Source source_ = Source::layers;
  std::string name_ = "model";
  std::string text_;  // of the layers that were added: a line for each
};

}  // namespace v1
}  // namespace gradring
