// SPDX-License-Identifier: Apache-2.0
#include "nn/models/model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>

#include "kernels/base/error.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"

namespace gradring::nn {
namespace {

struct BuiltIn {
  std::string_view name;
  const char* const* text;
};

constexpr std::array kBuiltIn = {BuiltIn{"convnet", &kConvNetText},
                                 BuiltIn{"convnet-deep", &kConvNetDeepText},
                                 BuiltIn{"lenet5", &kLeNet5Text},
                                 BuiltIn{"resnet18", &kResNet18Text},
                                 BuiltIn{"resnet18-cifar", &kResNet18CifarText},
                                 BuiltIn{"airbench94", &kAirbench94Text}};

constexpr auto kNames = [] {
  std::array<std::string_view, kBuiltIn.size()> names;
  std::ranges::transform(kBuiltIn, names.begin(), &BuiltIn::name);
  return names;
}();

/// of(layer, input) for all layers, with the layers' names before those of the tensors.
template <class Of>
std::vector<Parameter> each_tensor(const Model& model, const Of& of) {
  const std::vector<Activations> inputs = inputs_of(model);
  std::vector<Parameter> all;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto mine = std::visit([&](const auto& layer) { return of(layer, inputs[i]); }, model.layers[i].layer);
    for (const Parameter& tensor : mine) {
      all.push_back(tensor);
      all.back().name = model.layers[i].name + "." + tensor.name;
    }
  }
  return all;
}

}  // namespace

std::vector<std::vector<std::size_t>> reads_of(const Model& model) {
  std::map<std::string_view, std::size_t> outputs = {{kModelInput, 0}};
  std::vector<std::vector<std::size_t>> reads;
  std::vector<int> readers(model.layers.size() + 1);
  for (const auto& [name, layer, inputs] : model.layers) {
    std::vector<std::size_t>& mine = reads.emplace_back();
    for (const std::string& input : inputs) {
      const auto found = outputs.find(input);
      check(found != outputs.end(),
            [&] { return name + " reads '" + input + "', expected the name of a layer before it, or input"; });
      mine.push_back(found->second);
    }
    if (inputs.empty()) mine.push_back(reads.size() - 1);
    check(mine.size() == inputs_of(layer), [&] {
      return name + " reads " + std::to_string(mine.size()) + " layers, but " + std::string(kind_of(layer)) +
             " takes " + std::to_string(inputs_of(layer));
    });
    for (const std::size_t read : mine) ++readers[read];
    check(outputs.emplace(name, reads.size()).second, [&] { return "two layers have the name '" + name + "'"; });
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    check((readers[i + 1] == 0) == (i + 1 == model.layers.size()), [&] {
      return readers[i + 1] == 0 ? "no layer reads the output of " + model.layers[i].name
                                 : "the last layer, " + model.layers[i].name + ", is read, but gives the logits";
    });
  return reads;
}

std::vector<Activations> activations_of(const Model& model, std::int64_t batch) {
  const auto reads = reads_of(model);
  std::vector<Activations> all = {Shape{batch, model.sample[0], model.sample[1], model.sample[2]}};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer, inputs] = model.layers[i];
    const Activations& first = all[reads[i].front()];
    for (const std::size_t other : reads[i]) {
      check(all[other].shape == first.shape, [&] {
        return name + " reads " + first.shape.to_string() + " and " + all[other].shape.to_string() +
               ", expected equal shapes";
      });
      check(all[other].has_order_of(first),
            [&] { return name + " reads a flattened image and values in another order, expected one order"; });
    }
    all.push_back(output_of(layer, first));
  }
  return all;
}

std::vector<Activations> inputs_of(const Model& model, std::int64_t batch) {
  const std::vector<Activations> all = activations_of(model, batch);
  std::vector<Activations> inputs;
  for (const std::vector<std::size_t>& reads : reads_of(model)) inputs.push_back(all[reads.front()]);
  return inputs;
}

std::vector<Parameter> parameters_of(const Model& model) {
  auto all = each_tensor(model, [](const auto& layer, const Activations& input) { return layer.parameters(input); });
  for (Parameter& parameter : all) parameter.frozen = model.frozen.contains(parameter.name);
  return all;
}

void freeze(Model& model, std::string_view parameter) {
  const std::vector<Parameter> all = parameters_of(model);
  check(std::ranges::find(all, parameter, &Parameter::name) != all.end(), [&] {
    return "model " + model.name + " has no parameter '" + std::string(parameter) +
           "', expected one of its state_dict that is no buffer";
  });
  model.frozen.emplace(parameter);
}

std::vector<Parameter> buffers_of(const Model& model) {
  return each_tensor(model, [](const auto& layer, const Activations& input) { return layer.buffers(input); });
}

std::vector<Parameter> tensors_of(const Model& model) {
  std::vector<Parameter> all = parameters_of(model);
  std::ranges::move(buffers_of(model), std::back_inserter(all));
  return all;
}

std::string name_of(const ModelText& model) { return std::filesystem::path(model.name).stem().string(); }

std::span<const std::string_view> model_names() { return kNames; }

ModelText built_in(std::string_view name) {
  const auto* const found = std::ranges::find(kBuiltIn, name, &BuiltIn::name);
  if (found != kBuiltIn.end()) return {name, *found->text};
  std::string known;
  for (const std::string_view each : kNames) known += (known.empty() ? "" : ", ") + std::string(each);
  throw InvalidArgument("there is no model " + in_quotes(name) + ", expected one of " + known +
                        ", or the path of a model file, NAME.toml." + did_you_mean(name, kNames));
}

Model make_model(const ModelText& model, const Shape& sample, std::int64_t classes) {
  return read_model(model.text.empty() ? built_in(model.name) : model, sample, classes);
}

std::vector<std::string> describe_layers(const Model& model) {
  const std::vector<std::vector<std::size_t>> reads = reads_of(model);
  const std::vector<Activations> inputs_of_layers = inputs_of(model);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer, inputs] = model.layers[i];
    std::string line = name + ": " + std::visit([](const auto& one) { return one.torch_module(); }, layer);
    for (std::size_t input = 0; input < reads[i].size(); ++input) {
      const std::size_t read = reads[i][input];
      line += (input == 0 ? " of " : " and ") + (read == 0 ? std::string(kModelInput) : model.layers[read - 1].name);
    }
    std::string frozen;
    for (const Parameter& parameter : parameters_of(layer, inputs_of_layers[i]))
      if (model.frozen.contains(name + "." + parameter.name))
        frozen += (frozen.empty() ? ", " : " and ") + parameter.name;
    lines.push_back(frozen.empty() ? line : line + frozen + " frozen");
  }
  return lines;
}

}  // namespace gradring::nn
