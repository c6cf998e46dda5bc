// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/layers/layer.h"

namespace gradring::nn {

struct NamedLayer {
  std::string name;  ///< PyTorch's module path, e.g. "conv_layers.0"; parameters are name + ".weight", ...
  Layer layer;
  std::vector<std::string> inputs =
      {};  ///< the layers that it reads, kModelInput for the model's; empty: the one before
};

/// The name of a model's input among a layer's inputs.
inline constexpr std::string_view kModelInput = "input";

/// Components that PyTorch's wrappers insert into names, and readers of files skip: no layer's name has one.
inline constexpr std::string_view kWrapperComponents[] = {"module", "_orig_mod", "_fsdp_wrapped_module",
                                                          "_checkpoint_wrapped_module"};

/// A graph of layers, each after those that it reads; owns no memory and knows no device. The last layer's output is the
/// logits.
struct Model {
  std::string name;
  Shape sample;  ///< one sample without the batch: [height, width, channels]
  std::int64_t classes = 0;
  std::vector<NamedLayer> layers;
  std::set<std::string, std::less<>> frozen = {};  ///< names of the parameters that are not trained
};

/// Excludes a parameter from training, by its name in the model ("fc.weight").
///
/// Errors    InvalidArgument if the model has no such parameter.
void freeze(Model& model, std::string_view parameter);

/// What each layer reads: 0 is the model's input, i + 1 the output of layer i.
///
/// Errors    InvalidArgument if two layers have one name, a layer reads what is not before it or too few or too many
///           others, or nothing reads a layer but the last.
std::vector<std::vector<std::size_t>> reads_of(const Model& model);

/// The model's input for `batch` samples, then the output of each layer.
///
/// Errors    as reads_of; InvalidArgument if a layer cannot take what it reads.
std::vector<Activations> activations_of(const Model& model, std::int64_t batch = 1);

/// What each layer reads, of activations_of (one of its inputs: all have the same shape).
std::vector<Activations> inputs_of(const Model& model, std::int64_t batch = 1);

/// The parameters of `model`, with their names in it, in state_dict order; frozen ones too.
std::vector<Parameter> parameters_of(const Model& model);

/// The buffers of `model`: tensors that are saved, but not trained. Named and ordered as the parameters.
std::vector<Parameter> buffers_of(const Model& model);

/// Both: all tensors of the model's state, parameters first.
std::vector<Parameter> tensors_of(const Model& model);

/// Layer for layer, for messages: "conv2: Conv2d(1, 32, 3, stride=1, padding=0) of relu1, weight and bias frozen".
std::vector<std::string> describe_layers(const Model& model);

/// A model as text: TOML, which docs/models.md describes.
struct ModelText {
  std::string name;  ///< of a built-in model, or the path of a file; for messages
  std::string text;  ///< empty: that of the built-in one

  template <std::convertible_to<std::string_view> Name>
  ModelText(const Name& of, std::string toml = {})  // NOLINT(google-explicit-constructor): a built-in one by its name
      : name(std::string_view(of)), text(std::move(toml)) {}
};

/// The name of the model: without folder and extension.
std::string name_of(const ModelText& model);

/// The files nn/models/*.toml, by gradring_embed.
extern const char *const kConvNetText, *const kConvNetDeepText, *const kLeNet5Text, *const kResNet18Text,
                                                                                        *const kResNet18CifarText,
                                                                                            *const kAirbench94Text;

/// The names of the built-in models: of these files.
std::span<const std::string_view> model_names();

/// Errors    InvalidArgument for an unknown name.
ModelText built_in(std::string_view name);

/// The most layers of a model file, with those of its blocks.
inline constexpr std::size_t kMostLayers = 1024;

/// The model of a file's text for images of that shape, [height, width, channels].
///
/// Errors    InvalidArgument with file and line: no TOML, unknown or missing keys and kinds, invalid values, names that
///           no PyTorch module may have or that are used twice, shapes that do not fit (both are named), unused outputs,
///           too many layers, a last layer that does not give [n, classes].
/// Example   tests/nn/models/model_file_test.cpp
Model read_model(const ModelText& source, const Shape& sample, std::int64_t classes);

/// The same of a model that may be built in.
///
/// Errors    InvalidArgument, as built_in and read_model.
Model make_model(const ModelText& model, const Shape& sample, std::int64_t classes);

inline Model convnet(const Shape& sample, std::int64_t classes) { return make_model("convnet", sample, classes); }
inline Model convnet_deep(const Shape& sample, std::int64_t classes) {
  return make_model("convnet-deep", sample, classes);
}

}  // namespace gradring::nn
