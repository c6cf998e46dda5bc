// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "nn/models/file_layers.h"
#include "nn/models/model.h"
#include "nn/models/toml_text.h"

namespace gradring::nn {
namespace {

/// The value of this name: the channels, or features, of what a layer or block reads.
constexpr std::string_view kChannelsRead = "in";

constexpr std::size_t kMostNested = 32;
/// Elements of a tensor, for one sample: beyond any memory, and far from an overflow of bytes.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

/// The message of an error without the source line that check() appends.
std::string reason_of(const InvalidArgument& error) {
  const std::string_view text = error.what();
  const std::size_t location = text.rfind(" [");
  const bool is_source =
      location != text.npos && (text.find(".cpp:", location) != text.npos || text.find(".h:", location) != text.npos);
  return std::string(is_source ? text.substr(0, location) : text);
}

/// The layers of the model, or of one use of a block.
struct Scope {
  std::string prefix;  ///< of names: "layer1.0."
  std::size_t input = 0;
  Values values;
};

/// Computes the sizes and shapes of a file's layers. Numbers of outputs are those of reads_of: 0 is the model's input.
class ModelReader {
 public:
  ModelReader(const ModelText& source, const Shape& sample, std::int64_t classes) : file_(source.name) {
    check(sample.rank() == 3,
          [&] { return "a model has samples of " + sample.to_string() + ", expected [height, width, channels]"; });
    model_ = {.name = nn::name_of(source), .sample = sample, .classes = classes, .layers = {}};
    activations_ = {Shape{1, sample[0], sample[1], sample[2]}};
    lines_ = {1};
    readers_ = {0};
  }

  Model read(const toml::table& table) {
    const Shape& sample = model_.sample;
    read_ = read_file_layers(file_, table,
                             {{"classes", model_.classes},
                              {"image_height", sample[0]},
                              {"image_width", sample[1]},
                              {"image_channels", sample[2]},
                              {std::string(kChannelsRead), sample[2]}});
    expand(read_.layers, {.prefix = "", .input = 0, .values = read_.values});
    check_whole();
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& reason) const {
    throw ModelFileError(file_, line, reason);
  }

  /// The name of an output.
  std::string name_of(std::size_t output) const {
    return output == 0 ? std::string(kModelInput) : model_.layers[output - 1].name;
  }

  /// Appends the layers to the model. Returns the last one's output.
  std::size_t expand(const std::vector<FileLayer>& layers, Scope scope) {
    std::vector<std::size_t> outputs = {scope.input};
    for (const FileLayer& layer : layers) {
      const std::string full = scope.prefix + layer.name.text;
      if (full.size() > kLongestName)
        fail(layer.name.line,
             "the name " + in_quotes(full) + " is longer than " + std::to_string(kLongestName) + " characters");
      std::vector<std::size_t> reads;
      for (const std::size_t read : layer.reads) reads.push_back(outputs[read]);
      scope.values[std::string(kChannelsRead)] = channels_of(reads.front());
      outputs.push_back(layer.kind == kBlock ? add_block(layer, full, reads, scope)
                                             : add_layer(layer, full, reads, scope));
    }
    return outputs.back();
  }

  std::int64_t channels_of(std::size_t output) const {
    const Shape& shape = activations_[output].shape;
    return shape[shape.rank() - 1];
  }

  std::size_t add_block(const FileLayer& layer, const std::string& full, const std::vector<std::size_t>& reads,
                        const Scope& scope) {
    const FileBlock& block = enter(layer.block);
    FileTable use(file_, *layer.keys, &scope.values);
    use.belongs_to(full);
    if (reads.size() != 1) use.fail("inputs", "a block reads one input, found " + std::to_string(reads.size()));
    const std::int64_t repeats = use.integer("repeat", 1, 1, kMostLayers);
    std::size_t output = reads.front();
    for (std::int64_t i = 0; i < repeats; ++i) {
      Scope inner{.prefix = full + (use.has("repeat") ? "." + std::to_string(i) + "." : "."),
                  .input = output,
                  .values = read_.values};
      Values given = scope.values;
      given[std::string(kChannelsRead)] = channels_of(output);
      FileTable arguments(file_, *layer.keys, &given);
      arguments.belongs_to(full);
      for (const std::string& parameter : block.parameters)
        inner.values[parameter] = arguments.integer(parameter, std::numeric_limits<std::int64_t>::min(), {},
                                                    std::numeric_limits<std::int64_t>::max());
      output = expand(block.layers, std::move(inner));
    }
    enclosing_.pop_back();
    return output;
  }

  /// The block of that name, which exists; until enclosing_.pop_back() it may not be entered again.
  const FileBlock& enter(const FileText& block) {
    if (std::ranges::count(enclosing_, block.text) > 0) {
      std::string path;
      for (const std::string& each : enclosing_) path += each + ", ";
      fail(block.line, "the block '" + block.text + "' contains itself: " + path + block.text);
    }
    if (enclosing_.size() == kMostNested)
      fail(block.line, "more than " + std::to_string(kMostNested) + " nested blocks");
    enclosing_.push_back(block.text);
    return read_.blocks.at(block.text);
  }

  std::size_t add_layer(const FileLayer& stated, const std::string& full, const std::vector<std::size_t>& reads,
                        const Scope& scope) {
    const std::size_t line = stated.name.line;
    if (model_.layers.size() == kMostLayers) fail(line, "more than " + std::to_string(kMostLayers) + " layers");
    if (!names_.emplace(full).second) fail(line, "the name '" + full + "' is used twice");
    FileTable keys(file_, *stated.keys, &scope.values);
    keys.belongs_to(full);
    const Activations& input = activations_[reads.front()];
    std::string read_names;
    for (const std::size_t read : reads) read_names += (read_names.empty() ? "" : " and ") + name_of(read);
    try {
      const Layer layer = read_layer(stated.kind, keys, input);
      check_reads(line, full, layer, reads);
      if (const auto* conv = std::get_if<Conv2d>(&layer); conv && conv->init == Init::whitening && reads.front() != 0)
        keys.fail("init", "'init' is 'whitening', which is of images, but it reads " + read_names + ", expected input");
      const Activations output = output_of(layer, input);
      check_elements(line, full, "an output", output.shape);
      freeze(stated.frozen, full, parameters_of(layer, input));
      for (const auto& tensors : {parameters_of(layer, input), buffers_of(layer, input)})
        for (const Parameter& tensor : tensors) {
          check_elements(line, full, "a " + tensor.name, tensor.shape);
          tensor_names_.emplace(full + "." + tensor.name);
        }
      append({.name = full, .layer = layer}, reads);
      activations_.push_back(output);
      lines_.push_back(line);
    } catch (const ModelFileError&) {
      throw;
    } catch (const InvalidArgument& error) {
      fail(line, full + " reads " + read_names + ": " + reason_of(error));
    }
    return model_.layers.size();
  }

  /// frozen = ["weight"]: which of the layer's parameters are not trained.
  void freeze(const std::vector<FileText>& frozen, const std::string& layer, const std::vector<Parameter>& parameters) {
    std::vector<std::string_view> names;
    std::string list;
    for (const Parameter& parameter : parameters) {
      names.push_back(parameter.name);
      list += (list.empty() ? "" : ", ") + parameter.name;
    }
    for (const auto& [name, line] : frozen) {
      if (std::ranges::count(names, name) == 0)
        fail(line, "frozen has " + in_quotes(name) + ", expected parameters of " + layer + ": " + list + "." +
                       did_you_mean(name, names));
      model_.frozen.insert(layer + "." + name);
    }
  }

  void append(NamedLayer layer, const std::vector<std::size_t>& reads) {
    if (reads != std::vector{model_.layers.size()})
      for (const std::size_t read : reads) layer.inputs.push_back(name_of(read));
    for (const std::size_t read : reads) ++readers_[read];
    readers_.push_back(0);
    model_.layers.push_back(std::move(layer));
  }

  void check_reads(std::size_t line, const std::string& name, const Layer& layer,
                   const std::vector<std::size_t>& reads) const {
    const std::size_t expected = inputs_of(layer);
    if (reads.size() != expected)
      fail(line, name + " has " + std::to_string(reads.size()) + (reads.size() == 1 ? " input" : " inputs") +
                     ", expected " + std::to_string(expected) + " for " + std::string(nn::kind_of(layer)) +
                     (expected > reads.size() ? R"(: add inputs = ["NAME", "NAME"])" : ""));
    const Activations& first = activations_[reads.front()];
    for (const std::size_t read : reads) {
      const Activations& other = activations_[read];
      if (other.shape == first.shape && other.has_order_of(first)) continue;
      fail(line, name + " reads " + shown_for_any_batch(first.shape) + " (" + name_of(reads.front()) + ") and " +
                     shown_for_any_batch(other.shape) + " (" + name_of(read) + "), expected equal shapes" +
                     (other.shape == first.shape ? " before flatten, too: the values of a flattened image are in "
                                                   "another order than other features"
                                                 : ""));
    }
  }

  void check_elements(std::size_t line, const std::string& name, const std::string& what, const Shape& shape) const {
    if (shape.elements() <= kMostElements) return;
    fail(line, name + " has " + what + " of " + std::to_string(shape.elements()) + " elements, expected at most " +
                   std::to_string(kMostElements));
  }

  void check_whole() const {
    for (std::size_t i = 1; i < model_.layers.size(); ++i)
      if (readers_[i] == 0)
        fail(lines_[i], "the output of " + name_of(i) + ", " + shown_for_any_batch(activations_[i].shape) +
                            ", is unused, expected a layer that reads it");
    const Shape& last = activations_.back().shape;
    if (last.rank() != 2 || last[1] != model_.classes)
      fail(lines_.back(), "the last layer, " + model_.layers.back().name + ", gives " + shown_for_any_batch(last) +
                              ", expected [n, classes]: [n, " + std::to_string(model_.classes) + "]");
    if (tensor_names_.empty()) fail(lines_.back(), "the model has no parameters, expected a layer with weights");
    if (!activations_.back().are_features_in_torch_order())
      fail(lines_.back(), "the last layer, " + model_.layers.back().name +
                              ", gives a flattened image as logits, expected a linear layer or global_avg_pool2d");
    for (std::size_t i = 0; i < model_.layers.size(); ++i)
      if (const std::string& name = model_.layers[i].name; tensor_names_.contains(name))
        fail(lines_[i + 1], "the name '" + name + "' is that of a tensor of another layer");
  }

  const std::string& file_;
  Model model_;
  FileLayers read_;
  std::vector<std::string> enclosing_;    // names of the blocks that are being expanded
  std::vector<Activations> activations_;  // of each output, for one sample
  std::vector<std::size_t> lines_;        // of each output's layer
  std::vector<int> readers_;              // of each output
  std::set<std::string> names_, tensor_names_;
};

}  // namespace

Model read_model(const ModelText& source, const Shape& sample, std::int64_t classes) {
  toml::table table;
  try {
    table = parse_toml(source.text);
  } catch (const TomlError& error) {
    throw ModelFileError(source.name, error.line(), std::string("invalid TOML: ") + error.what());
  }
  return ModelReader(source, sample, classes).read(table);
}

}  // namespace gradring::nn
