// SPDX-License-Identifier: Apache-2.0
#include "nn/models/file_layers.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "nn/layers/layer.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

/// What the exported graph calls its input, output and preprocessing.
constexpr std::string_view kReserved[] = {kModelInput, "images", "logits", "preprocessing"};
/// Arguments of PyTorch's modules that a file does not state.
constexpr std::string_view kGivenByInput[] = {"in", "in_channels", "in_features", "num_features"};
/// Keys of a block's use, which no parameter of a block may have.
constexpr std::string_view kKeysOfUse[] = {kBlock, "of", "repeat", "inputs"};

constexpr std::size_t kMostNames = 256;

std::size_t line_of(const toml::node& node) { return node.source().begin.line; }

/// Whether text is one or several names, separated by dots, of letters, digits and _: a path of PyTorch's modules.
bool is_module_path(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !text.empty() && std::ranges::all_of(text, is_allowed) && text.front() != '.' && text.back() != '.' &&
         text.find("..") == std::string_view::npos;
}

bool is_equal_but_for_capitals(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The kind of what PyTorch calls so: a module, AdaptiveAvgPool2d, or a usual attribute of one, fc1; empty for others.
template <class... L>
std::string_view kind_in_torch(std::string_view name, const std::variant<L...>& /*any*/) {
  const std::string_view attribute = name.substr(0, name.find_last_not_of("0123456789") + 1);
  std::string_view kind;
  const auto compare = [&]<class Kind>(const Kind& layer) {
    const std::string module = layer.torch_module();
    if (kind.empty() && (attribute == Kind::kTorchAttribute ||
                         is_equal_but_for_capitals(name, std::string_view(module).substr(0, module.find('(')))))
      kind = Kind::kKind;
  };
  (compare(L{}), ...);
  return kind;
}

class FileReader {
 public:
  FileReader(const std::string& file, Values given) : file_(file), read_{.values = std::move(given)} {}

  FileLayers read(const toml::table& table) {
    FileTable top(file_, table);
    const toml::table* const parameters = top.table("parameters");
    const toml::table* const blocks = top.table("blocks");
    if (parameters != nullptr && parameters->contains("layers") && !top.has("layers"))
      FileTable(file_, *parameters)
          .fail("layers", "'layers' is a key of [parameters], expected it above the first [TABLE]");
    const toml::array& layers = top.list("layers");
    top.finish();
    if (parameters != nullptr) read_parameters(*parameters);
    if (blocks != nullptr) read_blocks(*blocks);
    read_.layers = read_list(layers, false);
    return std::move(read_);
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& reason) const {
    throw ModelFileError(file_, line, reason);
  }

  void check_value_name(std::size_t line, const std::string& name) const {
    check_length(line, name);
    if (!is_name(name)) fail(line, in_quotes(name) + " is no name: expected letters, digits and _, not a digit first");
    if (read_.values.contains(name))
      fail(line, in_quotes(name) + " has a value already, a given one or that of [parameters]: choose another name");
  }

  void check_length(std::size_t line, const std::string& name) const {
    if (name.size() <= kLongestName) return;
    fail(line, "the name " + in_quotes(name) + " is longer than " + std::to_string(kLongestName) + " characters");
  }

  void check_number_of_names(std::size_t line, std::size_t names) const {
    if (names > kMostNames) fail(line, "more than " + std::to_string(kMostNames) + " parameters");
  }

  void read_parameters(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::size_t line = key.source().begin.line;
      check_value_name(line, name);
      const auto* const value = node.as_integer();
      if (value == nullptr)
        fail(line, "the parameter " + in_quotes(name) + " is " + shown(node) + ", expected an integer");
      read_.values[name] = value->get();
      check_number_of_names(line, table.size());
    }
  }

  void read_blocks(const toml::table& table) {
    std::vector<std::pair<FileBlock*, const toml::array*>> lists;
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::size_t line = key.source().begin.line;
      check_length(line, name);
      if (!is_name(name)) fail(line, in_quotes(name) + " is no name of a block: expected letters, digits and _");
      if (!node.is_table())
        fail(line, "the block " + in_quotes(name) + " is " + shown(node) + ", expected a table [blocks." + name + "]");
      FileTable keys(file_, *node.as_table());
      keys.belongs_to("block " + name);
      FileBlock& block = read_.blocks[name];
      lists.emplace_back(&block, &keys.list("layers"));
      for (const auto& [parameter, at] : keys.texts("parameters")) {
        check_value_name(at, parameter);
        if (std::ranges::count(kKeysOfUse, parameter) > 0)
          fail(at, in_quotes(parameter) + " is a key of each use of a block: choose another name");
        if (std::ranges::count(layer_kinds(), parameter) > 0)
          fail(at, in_quotes(parameter) + " is a kind of layer: choose another name");
        if (std::ranges::count(block.parameters, parameter) > 0)
          fail(at, in_quotes(parameter) + " is listed twice in 'parameters'");
        block.parameters.push_back(parameter);
        check_number_of_names(at, block.parameters.size());
      }
      keys.finish();
    }
    for (const auto& [block, list] : lists) block->layers = read_list(*list, true);
  }

  std::vector<FileLayer> read_list(const toml::array& list, bool is_of_block) const {
    std::vector<FileLayer> layers;
    std::map<std::string, std::size_t, std::less<>> outputs;
    for (const toml::node& node : list) {
      const toml::table* const table = node.as_table();
      if (table == nullptr)
        fail(line_of(node), "a layer is " + shown(node) + R"(, expected a table such as { relu = "relu1" })");
      FileTable keys(file_, *table);
      FileLayer layer{.kind = kind_of(keys), .name = {}, .keys = table, .reads = {}, .frozen = {}, .block = {}};
      layer.name = keys.text(layer.kind, "its name in quotes");
      check_name(layer, is_of_block);
      keys.belongs_to(layer.name.text);
      layer.reads = reads_of(keys, outputs, layers.size());
      read_keys(keys, layer);
      keys.finish();
      if (!outputs.emplace(layer.name.text, layers.size() + 1).second)
        fail(layer.name.line, "the name " + in_quotes(layer.name.text) + " is used twice");
      layers.push_back(std::move(layer));
    }
    return layers;
  }

  std::string kind_of(const FileTable& keys) const {
    std::vector<std::string_view> kinds(layer_kinds().begin(), layer_kinds().end());
    kinds.push_back(kBlock);
    std::vector<std::string_view> found;
    std::ranges::copy_if(kinds, std::back_inserter(found), [&](std::string_view kind) { return keys.has(kind); });
    if (found.size() == 1) return std::string(found.front());
    if (found.size() > 1)
      keys.fail(found[0], "a layer is both " + std::string(found[0]) + " and " + std::string(found[1]) +
                              ", expected one kind; separate layers by },");
    fail_kind(keys, kinds);
  }

  [[noreturn]] void fail_kind(const FileTable& keys, const std::vector<std::string_view>& kinds) const {
    std::string list;
    for (const std::string_view kind : kinds) list += (list.empty() ? "" : ", ") + std::string(kind);
    const std::vector<std::string> given = keys.all();
    std::string key = given.empty() ? std::string() : given.front(), meant;
    if (read_.blocks.contains(key))
      keys.fail(key, "'" + key + "' is a block, expected block = \"NAME\", of = \"" + key + "\"");
    for (const std::string& each : given) {
      if (!meant.empty()) break;
      meant = kind_in_torch(each, Layer());
      if (meant.empty()) meant = nearest_name(each, kinds);
      if (!meant.empty()) key = each;
    }
    keys.fail(key, (key.empty() ? "a layer has no kind" : in_quotes(key) + " is no kind of layer") +
                       ", expected one of " + list + "." + (meant.empty() ? "" : " Did you mean '" + meant + "'?"));
  }

  void check_name(const FileLayer& layer, bool is_of_block) const {
    const auto& [name, line] = layer.name;
    if (!is_module_path(name))
      fail(line, "'" + layer.kind + "' is " + in_quotes(name) +
                     ", expected a name: letters, digits and _, with dots between");
    check_length(line, name);
    const std::string_view first = std::string_view(name).substr(0, name.find('.'));
    if (name == kModelInput || (!is_of_block && std::ranges::count(kReserved, first) > 0))
      fail(line, "the name " + in_quotes(name) +
                     " is reserved: input is what a model or block reads, images, logits "
                     "and preprocessing are names of exported graphs");
    for (const std::string_view component : kWrapperComponents)
      if (("." + name + ".").find("." + std::string(component) + ".") != std::string::npos)
        fail(line, "the name " + in_quotes(name) + " is reserved: PyTorch's wrappers insert '" +
                       std::string(component) + "' into names, and it is skipped where weights are read");
  }

  /// What a layer reads: `inputs`, or the layer before.
  std::vector<std::size_t> reads_of(FileTable& keys, const std::map<std::string, std::size_t, std::less<>>& outputs,
                                    std::size_t before) const {
    const std::vector<FileText> inputs = keys.texts("inputs");
    if (!keys.has("inputs")) return {before};
    if (inputs.empty()) keys.fail("inputs", "'inputs' is empty, expected names of layers, or input");
    std::vector<std::size_t> reads;
    for (const auto& [name, line] : inputs) {
      const auto found = outputs.find(name);
      if (name != kModelInput && found == outputs.end()) {
        std::vector<std::string_view> names = {kModelInput};
        for (const auto& [each, output] : outputs) names.push_back(each);
        keys.fail_at(line, "'inputs' has " + in_quotes(name) +
                               ", expected input, or the name of a layer before this one in the same list." +
                               did_you_mean(name, names));
      }
      reads.push_back(name == kModelInput ? 0 : found->second);
    }
    return reads;
  }

  void read_keys(FileTable& keys, FileLayer& layer) const {
    if (layer.kind == kBlock) {
      layer.block = keys.text("of", "the name of a block in quotes");
      keys.integer("repeat", 1, 1);
      const std::vector<std::string>& parameters = find_block(keys, layer.block.text).parameters;
      for (const std::string& parameter : parameters) keys.accept(parameter);
      for (const std::string& parameter : parameters) keys.integer(parameter, 1);
      return;
    }
    for (const std::string_view key : kGivenByInput)
      if (keys.has(key)) keys.fail(key, in_quotes(key) + " is given by what the layer reads: leave it out");
    if (ask_keys(keys, layer.kind)) layer.frozen = read_frozen(keys);
  }

  const FileBlock& find_block(const FileTable& keys, const std::string& name) const {
    if (const auto found = read_.blocks.find(name); found != read_.blocks.end()) return found->second;
    std::vector<std::string_view> names;
    std::string list;
    for (const auto& [each, block] : read_.blocks) {
      names.push_back(each);
      list += (list.empty() ? "" : ", ") + each;
    }
    keys.fail("of", "there is no block " + in_quotes(name) + ", " +
                        (list.empty() ? "expected one of [blocks.NAME]" : "expected one of " + list + ".") +
                        did_you_mean(name, names));
  }

  /// Asks for all keys of a layer, by reading it as if after a layer of each rank. Returns whether it may have
  /// parameters.
  static bool ask_keys(FileTable& keys, const std::string& kind) {
    bool may_have_parameters = true;
    for (const Shape& any : {Shape{1, 1, 1, 1}, Shape{1, 1}}) try {
        may_have_parameters = !parameters_of(read_layer(kind, keys, any), any).empty();
      } catch (const ModelFileError&) {
        throw;
      } catch (const InvalidArgument&) {  // of sizes and shapes, which are not known yet
      }
    return may_have_parameters;
  }

  static std::vector<FileText> read_frozen(FileTable& keys) {
    std::vector<FileText> frozen = keys.texts("frozen");
    std::set<std::string_view> names;
    for (const FileText& each : frozen)
      if (!names.insert(each.text).second) keys.fail("frozen", "'frozen' has " + in_quotes(each.text) + " twice");
    return frozen;
  }

  const std::string& file_;
  FileLayers read_;
};

}  // namespace

FileLayers read_file_layers(const std::string& file, const toml::table& table, Values given) {
  return FileReader(file, std::move(given)).read(table);
}

}  // namespace gradring::nn
