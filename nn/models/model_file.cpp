// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "kernels/base/nearest_name.h"
#include "nn/models/expression.h"
#include "nn/models/file_table.h"
#include "nn/models/model.h"
#include "nn/models/toml_text.h"

namespace gradring::nn {
namespace {

constexpr std::string_view kBlock = "block";
/// The value of this name: the channels, or features, of what a layer or block reads.
constexpr std::string_view kChannelsRead = "in";
/// What the exported graph calls its input, output and preprocessing.
constexpr std::string_view kReserved[] = {kModelInput, "images", "logits", "preprocessing"};

constexpr std::size_t kMostNames = 256;
constexpr std::size_t kMostNested = 32;
constexpr std::size_t kLongestName = 200;
/// Elements of a tensor, for one sample: beyond any memory, and far from an overflow of bytes.
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

/// Whether text is one or several names, separated by dots, of letters, digits and _: a path of PyTorch's modules.
bool is_module_path(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !text.empty() && std::ranges::all_of(text, is_allowed) && text.front() != '.' && text.back() != '.' &&
         text.find("..") == std::string_view::npos;
}

/// The message of an error without the source line that check() appends.
std::string reason_of(const InvalidArgument& error) {
  const std::string text = error.what();
  const std::size_t location = text.rfind(" [");
  if (location == std::string::npos) return text;
  const bool is_source =
      text.find(".cpp:", location) != std::string::npos || text.find(".h:", location) != std::string::npos;
  return is_source ? text.substr(0, location) : text;
}

struct Block {
  std::vector<std::string> parameters;
  const toml::array* layers = nullptr;
};

/// The layers of the model, or of one use of a block.
struct Scope {
  std::string prefix;  ///< of names: "layer1.0."
  std::size_t input = 0;
  Values values;
  std::map<std::string, std::size_t, std::less<>> outputs{};
};

/// Numbers of outputs are those of reads_of: 0 is the model's input.
class ModelReader {
 public:
  ModelReader(const ModelText& source, const Shape& sample, std::int64_t classes) : file_(source.name) {
    check(sample.rank() == 3,
          [&] { return "a model has samples of " + sample.to_string() + ", expected [height, width, channels]"; });
    model_ = {.name = nn::name_of(source), .sample = sample, .classes = classes, .layers = {}};
    values_ = {{"classes", classes},
               {"image_height", sample[0]},
               {"image_width", sample[1]},
               {"image_channels", sample[2]},
               {std::string(kChannelsRead), sample[2]}};
    activations_ = {Shape{1, sample[0], sample[1], sample[2]}};
    lines_ = {1};
    readers_ = {0};
  }

  Model read(const toml::table& table) {
    FileTable top(file_, table, values_);
    const toml::table* const parameters = top.table("parameters");
    const toml::table* const blocks = top.table("blocks");
    const toml::array& layers = top.list("layers");
    top.finish();
    if (parameters != nullptr) read_parameters(*parameters);
    if (blocks != nullptr) read_blocks(*blocks);
    Scope scope{.prefix = "", .input = 0, .values = values_};
    expand(layers, scope);
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

  void check_value_name(std::size_t line, const std::string& name) const {
    if (!is_name(name)) fail(line, in_message(name) + " is no name: expected letters, digits and _, not a digit first");
    if (values_.contains(name))
      fail(line, "'" + name + "' has a value already, a given one or that of [parameters]: choose another name");
  }

  void read_parameters(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::size_t line = key.source().begin.line;
      check_value_name(line, name);
      const auto* const value = node.as_integer();
      if (value == nullptr) fail(line, "the parameter '" + name + "' has another type, expected an integer");
      values_[name] = value->get();
      if (table.size() > kMostNames) fail(line, "more than " + std::to_string(kMostNames) + " parameters");
    }
  }

  void read_blocks(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::size_t line = key.source().begin.line;
      if (!is_name(name)) fail(line, in_message(name) + " is no name of a block: expected letters, digits and _");
      if (!node.is_table()) fail(line, "the block '" + name + "' is no table, expected [blocks." + name + "]");
      FileTable keys(file_, *node.as_table(), values_);
      Block& block = blocks_[name];
      block.layers = &keys.list("layers");
      for (const auto& [parameter, at] : keys.texts("parameters")) {
        check_value_name(at, parameter);
        static constexpr std::string_view kTaken[] = {kBlock, "of", "repeat", "inputs"};
        if (std::ranges::count(kTaken, parameter) > 0 || std::ranges::count(block.parameters, parameter) > 0)
          fail(at, "'" + parameter + "' has a meaning already: choose another name");
        block.parameters.push_back(parameter);
        if (block.parameters.size() > kMostNames) fail(at, "more than " + std::to_string(kMostNames) + " parameters");
      }
      keys.finish();
    }
  }

  /// Appends the layers to the model. Returns the last one's output.
  std::size_t expand(const toml::array& layers, Scope& scope) {
    std::size_t output = scope.input;
    for (const toml::node& node : layers) {
      const toml::table* const table = node.as_table();
      if (table == nullptr)
        fail(node.source().begin.line, R"(a layer is no table, expected one as { relu = "relu1" })");
      FileTable keys(file_, *table, scope.values);
      const std::string kind = kind_of(keys);
      const FileText name = keys.text(kind);
      check_name(name, scope);
      const std::vector<std::size_t> reads = reads_of(keys, scope, output);
      scope.values[std::string(kChannelsRead)] = channels_of(reads.front());
      output = kind == kBlock ? add_block(keys, name, reads, scope) : add_layer(keys, kind, name, reads, scope);
      scope.outputs.emplace(name.text, output);
    }
    return output;
  }

  std::int64_t channels_of(std::size_t output) const {
    const Shape& shape = activations_[output].shape;
    return shape[shape.rank() - 1];
  }

  std::string kind_of(const FileTable& keys) const {
    std::vector<std::string_view> kinds(layer_kinds().begin(), layer_kinds().end());
    kinds.push_back(kBlock);
    std::vector<std::string_view> found;
    std::ranges::copy_if(kinds, std::back_inserter(found), [&](std::string_view kind) { return keys.has(kind); });
    if (found.size() == 1) return std::string(found.front());
    const std::string first = keys.first_key();
    if (found.size() > 1)
      keys.fail(first, "a layer is both " + std::string(found[0]) + " and " + std::string(found[1]) +
                           ", expected one kind; separate layers by },");
    std::string list;
    for (const std::string_view kind : kinds) list += (list.empty() ? "" : ", ") + std::string(kind);
    keys.fail(first, (first.empty() ? std::string("a layer is empty") : in_message(first) + " is no kind of layer") +
                         ", expected one of " + list + "." + did_you_mean(first, kinds));
  }

  /// Checks the name of a layer or block.
  void check_name(const FileText& name, const Scope& scope) const {
    const std::string full = scope.prefix + name.text;
    if (!is_module_path(name.text))
      fail(name.line,
           in_message(name.text) + " is no name of a layer: expected letters, digits and _, and dots between");
    if (full.size() > kLongestName)
      fail(name.line,
           "the name " + in_message(full) + " is longer than " + std::to_string(kLongestName) + " characters");
    const std::string_view first = std::string_view(full).substr(0, full.find('.'));
    if (name.text == kModelInput || std::ranges::count(kReserved, first) > 0)
      fail(name.line, "the name '" + full + "' is reserved: input is what a model or block reads, images, logits and " +
                          "preprocessing are names of exported graphs");
    for (const std::string_view component : kWrapperComponents)
      if (("." + name.text + ".").find("." + std::string(component) + ".") != std::string::npos)
        fail(name.line, "the name '" + full + "' is reserved: PyTorch's wrappers insert '" + std::string(component) +
                            "' into names, and it is skipped where weights are read");
    if (scope.outputs.contains(name.text)) fail(name.line, "the name '" + full + "' is used twice");
  }

  /// What a layer or block reads: `inputs`, or the layer before, whose output is `before`.
  std::vector<std::size_t> reads_of(FileTable& keys, const Scope& scope, std::size_t before) const {
    if (!keys.has("inputs")) return (void)keys.texts("inputs"), std::vector{before};
    std::vector<std::size_t> reads;
    for (const auto& [name, line] : keys.texts("inputs")) {
      const auto found = scope.outputs.find(name);
      if (name != kModelInput && found == scope.outputs.end()) fail_input(line, name, scope);
      reads.push_back(name == kModelInput ? scope.input : found->second);
    }
    if (reads.empty()) keys.fail("inputs", "'inputs' is empty, expected names of layers, or input");
    return reads;
  }

  [[noreturn]] void fail_input(std::size_t line, const std::string& name, const Scope& scope) const {
    std::vector<std::string_view> names = {kModelInput};
    for (const auto& [each, output] : scope.outputs) names.push_back(each);
    fail(line, "inputs has " + in_message(name) +
                   ", expected input, or the name of a layer before this one in the same " + "list." +
                   did_you_mean(name, names));
  }

  std::size_t add_block(FileTable& keys, const FileText& name, const std::vector<std::size_t>& reads,
                        const Scope& scope) {
    const auto [of, line] = keys.text("of");
    const Block& block = find_block(line, of);
    if (reads.size() != 1) keys.fail("inputs", "a block reads one input, found " + std::to_string(reads.size()));
    const std::int64_t repeats = keys.integer("repeat", 1, 1, kMostLayers);
    enclosing_.push_back(of);
    std::size_t output = reads.front();
    for (std::int64_t i = 0; i < repeats; ++i) {
      Scope inner{.prefix = scope.prefix + name.text + (keys.has("repeat") ? "." + std::to_string(i) + "." : "."),
                  .input = output,
                  .values = values_};
      Values given = scope.values;
      given[std::string(kChannelsRead)] = channels_of(output);
      FileTable arguments = keys.with(given);
      for (const std::string& parameter : block.parameters)
        inner.values[parameter] = arguments.integer(parameter, std::numeric_limits<std::int64_t>::min(), {},
                                                    std::numeric_limits<std::int64_t>::max());
      arguments.finish();
      output = expand(*block.layers, inner);
    }
    enclosing_.pop_back();
    return output;
  }

  const Block& find_block(std::size_t line, const std::string& name) const {
    if (std::ranges::count(enclosing_, name) > 0) {
      std::string path;
      for (const std::string& each : enclosing_) path += each + ", ";
      fail(line, "the block '" + name + "' contains itself: " + path + name);
    }
    if (enclosing_.size() == kMostNested) fail(line, "more than " + std::to_string(kMostNested) + " nested blocks");
    if (const auto found = blocks_.find(name); found != blocks_.end()) return found->second;
    std::vector<std::string_view> names;
    std::string list;
    for (const auto& [each, block] : blocks_) {
      names.push_back(each);
      list += (list.empty() ? "" : ", ") + each;
    }
    fail(line, "there is no block " + in_message(name) + ", " +
                   (list.empty() ? "expected one of [blocks.NAME]" : "expected one of " + list + ".") +
                   did_you_mean(name, names));
  }

  std::size_t add_layer(FileTable& keys, const std::string& kind, const FileText& name,
                        const std::vector<std::size_t>& reads, const Scope& scope) {
    const std::string full = scope.prefix + name.text;
    if (model_.layers.size() == kMostLayers) fail(name.line, "more than " + std::to_string(kMostLayers) + " layers");
    if (!names_.emplace(full).second) fail(name.line, "the name '" + full + "' is used twice");
    const Activations& input = activations_[reads.front()];
    std::string read_names;
    for (const std::size_t read : reads) read_names += (read_names.empty() ? "" : " and ") + name_of(read);
    try {
      const Layer layer = read_layer(kind, keys, input);
      const std::vector<FileText> frozen = keys.texts("frozen");
      keys.finish();
      check_reads(name.line, full, layer, reads);
      if (const auto* conv = std::get_if<Conv2d>(&layer); conv && conv->init == Init::whitening && reads.front() != 0)
        keys.fail("init", full + " reads " + read_names + ", but whitening is of images: expected input");
      const Activations output = output_of(layer, input);
      check_elements(name.line, full, "an output", output.shape);
      freeze(frozen, full, parameters_of(layer, input));
      for (const auto& tensors : {parameters_of(layer, input), buffers_of(layer, input)})
        for (const Parameter& tensor : tensors) {
          check_elements(name.line, full, "a " + tensor.name, tensor.shape);
          tensor_names_.emplace(full + "." + tensor.name);
        }
      append({.name = full, .layer = layer}, reads);
      activations_.push_back(output);
      lines_.push_back(name.line);
    } catch (const ModelFileError&) {
      throw;
    } catch (const InvalidArgument& error) {
      fail(name.line, full + " reads " + read_names + ": " + reason_of(error));
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
        fail(line,
             "frozen has " + in_message(name) +
                 (list.empty() ? ", but " + layer + " has no parameters"
                               : ", expected parameters of " + layer + ": " + list + "." + did_you_mean(name, names)));
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
  Values values_;
  std::map<std::string, Block, std::less<>> blocks_;
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
