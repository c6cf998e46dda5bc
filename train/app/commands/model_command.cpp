// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/runtime/dry_run_device.h"
#include "nn/models/model.h"
#include "nn/program/program.h"
#include "train/app/commands/commands.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/core/setup/compute.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

using kernels::Shape;

constexpr const char* kShowUsage = "gradring model show NAME|FILE.toml";

struct ShowModelOptions {
  TrainConfig data;   ///< its options of a data set
  std::string input;  ///< "28x28x1"; empty: that of the dataset
  std::int64_t classes = 0;
  std::int64_t batch_size = 64;
  bool json = false;
};

CommandLine command_line(ShowModelOptions& options) {
  CommandLine line = {
      .command = "gradring model show",
      .purpose = "layers of a model, with shapes, parameters, multiply-adds and the memory of a training",
      .usage = {fmt::format("{} [OPTIONS]", kShowUsage)},
      .options = {text_option("input", "HxWxC", "height, width and channels of the images, instead of --dataset",
                              options.input),
                  count_option("classes", "number of classes, with --input", 1, options.classes),
                  count_option("batch-size", "samples of which the memory is (default 64)", 1, options.batch_size),
                  json_switch(options.json)},
      .takes_words = true,
      .notes =
          "Multiply-adds are those of convolutions and linear layers, forward, for one image, without biases. "
          "Memory is that of one rank on a CPU in fp32 with Adam; gradring plan takes all options of a "
          "training.\n\n"
          "Built-in models: " +
          fmt::format("{}", fmt::join(nn::model_names(), ", ")) +
          ". docs/models.md describes the files.\n\nExample:\n"
          "  gradring model show convnet --dataset cifar10\n"};
  const std::vector<Option> of_data = dataset_options(options.data);
  line.options.insert(line.options.begin(), of_data.begin(), of_data.end());
  return line;
}

/// "28x28x1"
Shape parse_input(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    extents.push_back(parse_integer("--input", text.substr(begin, end - begin), {.least = 1, .most = 1 << 16}));
    begin = end + 1;
  }
  if (extents.size() != 3)
    throw UsageError(fmt::format("--input is '{}', expected height, width and channels, such as 28x28x1", text));
  return Shape(extents);
}

nn::Model model_for(const ShowModelOptions& options, const std::string& name) {
  const nn::ModelText text = named_model(name);
  if (options.input.empty()) {
    if (options.classes > 0) throw UsageError("--classes is for --input: add it, or leave --classes out");
    check_image_options(options.data);
    const data::DatasetFacts set = facts_of(options.data);
    return nn::make_model(text, set.shape, set.classes());
  }
  if (options.classes == 0) throw UsageError("--classes is missing: --input does not say the number of classes");
  return nn::make_model(text, parse_input(options.input), options.classes);
}

struct LayerRow {
  const nn::NamedLayer* layer = nullptr;
  std::string reads;  ///< empty: the layer before
  std::vector<std::int64_t> output;
  std::int64_t parameters = 0, frozen = 0, buffers = 0, multiply_adds = 0;

  std::int64_t trained() const { return parameters - frozen; }
};

std::int64_t elements_of(const std::vector<nn::Parameter>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t sum, const nn::Parameter& each) { return sum + each.shape.elements(); });
}

/// A convolution or a linear layer; what other layers compute, and biases, count as no multiply-adds.
bool multiplies_matrices(const std::vector<nn::Parameter>& parameters) {
  return std::ranges::any_of(parameters, [](const nn::Parameter& each) { return each.shape.rank() > 1; });
}

std::vector<LayerRow> rows_of(const nn::Model& model) {
  const std::vector<nn::Activations> inputs = nn::inputs_of(model), all = nn::activations_of(model);
  std::vector<LayerRow> rows;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const nn::NamedLayer& layer = model.layers[i];
    const Shape& output = all[i + 1].shape;
    const std::vector<nn::Parameter> parameters = nn::parameters_of(layer.layer, inputs[i]);
    std::int64_t frozen = 0;
    for (const nn::Parameter& parameter : parameters)
      if (model.frozen.contains(layer.name + "." + parameter.name)) frozen += parameter.shape.elements();
    LayerRow row{.layer = &layer,
                 .reads = fmt::format("{}", fmt::join(layer.inputs, " ")),
                 .output = {output.extents().begin() + 1, output.extents().end()},
                 .parameters = elements_of(parameters),
                 .frozen = frozen,
                 .buffers = elements_of(nn::buffers_of(layer.layer, inputs[i]))};
    if (multiplies_matrices(parameters))
      row.multiply_adds =
          output.elements() * std::visit([](const auto& one) { return one.multiplications(); }, layer.layer);
    rows.push_back(std::move(row));
  }
  return rows;
}

LayerRow total_of(const std::vector<LayerRow>& rows) {
  LayerRow total;
  for (const LayerRow& row : rows) {
    total.parameters += row.parameters;
    total.frozen += row.frozen;
    total.buffers += row.buffers;
    total.multiply_adds += row.multiply_adds;
  }
  return total;
}

std::string module_of(const LayerRow& row) {
  return std::visit([](const auto& one) { return one.torch_module(); }, row.layer->layer);
}

/// Bytes by what they are for.
using Memory = std::vector<std::pair<std::string, std::size_t>>;

/// Throws what a backend throws that cannot plan the layers.
Memory plan(const nn::Model& model, std::int64_t batch_size, const LayerRow& total) {
  const Compute compute = make_compute({.device = "cpu", .threads = 1});
  kernels::DryRunDevice device(*compute.device);
  const nn::ProgramMemory program =
      nn::Program(model, batch_size, nn::ProgramMode::training, *compute.backend, device).memory();
  const std::size_t weights = static_cast<std::size_t>(total.parameters) * sizeof(float);
  const std::size_t gradients = static_cast<std::size_t>(total.trained()) * sizeof(float);
  return {{"weights", weights},
          {"gradients", gradients},
          {"optimizer", 2 * gradients},
          {"activations", program.activations},
          {"activation_gradients", program.activation_gradients},
          {"workspace", program.workspace},
          {"total", weights + 3 * gradients + program.total()}};
}

void print_table(const nn::Model& model, const std::vector<LayerRow>& rows) {
  const LayerRow total = total_of(rows);
  print_text("{}: images of {} x {} x {}, {} classes\n\n", model.name, model.sample[0], model.sample[1],
             model.sample[2], model.classes);
  TextTable table = TextTable::with({"layer", "module", "reads", "output"}, {"parameters", "multiply-adds"});
  for (const LayerRow& row : rows)
    table.rows.push_back({row.layer->name, module_of(row), row.reads, fmt::format("{}", row.output),
                          row.parameters > 0 ? fmt::to_string(row.parameters) : "",
                          row.multiply_adds > 0 ? fmt::to_string(row.multiply_adds) : ""});
  table.rows.push_back({"total", "", "", "", fmt::to_string(total.parameters), fmt::to_string(total.multiply_adds)});
  table.rows.push_back({"trainable", "", "", "", fmt::to_string(total.trained()), ""});
  table.rows.push_back({"frozen", "", "", "", fmt::to_string(total.frozen), ""});
  print_text("{}", table.text());
  if (total.buffers > 0) print_text("\n{} elements of buffers, which are not trained\n", total.buffers);
}

nlohmann::ordered_json to_json(const nn::Model& model, const std::vector<LayerRow>& rows) {
  const LayerRow total = total_of(rows);
  nlohmann::ordered_json json{{"model", model.name},
                              {"input", {model.sample[0], model.sample[1], model.sample[2]}},
                              {"classes", model.classes},
                              {"layers", nlohmann::ordered_json::array()}};
  for (const LayerRow& row : rows)
    json["layers"].push_back({{"name", row.layer->name},
                              {"kind", nn::kind_of(row.layer->layer)},
                              {"module", module_of(row)},
                              {"inputs", row.layer->inputs},
                              {"output", row.output},
                              {"parameters", row.parameters},
                              {"frozen", row.frozen},
                              {"buffers", row.buffers},
                              {"multiply_adds", row.multiply_adds}});
  json["parameters"] = total.parameters;
  json["trainable"] = total.trained();
  json["frozen"] = total.frozen;
  json["buffers"] = total.buffers;
  json["multiply_adds"] = total.multiply_adds;
  return json;
}

void run(const ShowModelOptions& options, const Words& words) {
  const nn::Model model = model_for(options, only_word(words, kShowUsage));
  const std::vector<LayerRow> rows = rows_of(model);
  if (!options.json) print_table(model, rows);
  nlohmann::ordered_json json = to_json(model, rows);
  json["batch_size"] = options.batch_size;
  std::string missing;
  try {
    for (const auto& [name, bytes] : plan(model, options.batch_size, total_of(rows)))
      json["memory_bytes"][name] = bytes;
  } catch (const std::exception& error) {
    missing = error.what();
    json["memory_error"] = missing;
  }
  if (options.json) {
    print_json(json);
    return;
  }
  if (!missing.empty()) {
    print_text("\nMemory of a training is not known: {}\n", missing);
    return;
  }
  constexpr double kMebibyte = 1024 * 1024;
  TextTable table = TextTable::with({fmt::format("training, batches of {}", options.batch_size)}, {"MiB"});
  for (const auto& [name, bytes] : json["memory_bytes"].items())
    table.rows.push_back({name, fmt::format("{:.2f}", bytes.get<double>() / kMebibyte)});
  print_text("\n{}", table.text());
}

}  // namespace

const Command kModelShow =
    make_command<ShowModelOptions>("show", "layers, shapes, parameters, multiply-adds and memory");

}  // namespace gradring::train
