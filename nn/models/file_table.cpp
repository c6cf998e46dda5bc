// SPDX-License-Identifier: Apache-2.0
#include "nn/models/file_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "kernels/base/printable.h"
#include "nn/layers/parts.h"

namespace gradring::nn {
namespace {

constexpr std::string_view kInteger = "an integer, or an expression such as \"2 * width\"";
constexpr std::size_t kLongestReason = 1000;

/// "8.0": with a point, so that it is no integer.
std::string shown_real(double value) {
  const std::string text = shortest(value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

}  // namespace

ModelFileError::ModelFileError(const std::string& file, std::size_t line, const std::string& reason)
    : InvalidArgument(printable(file) + ":" + std::to_string(line) + ": " +
                      shortened(printable(reason), kLongestReason)) {}

std::string shown(const toml::node& node) {
  if (const auto* value = node.as_string()) return in_quotes(value->get());
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_floating_point()) return shown_real(value->get());
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

bool FileTable::accepts(std::string_view key) const { return std::ranges::find(accepted_, key) != accepted_.end(); }

const toml::node* FileTable::find(std::string_view key) {
  if (!accepts(key)) accepted_.emplace_back(key);
  return table_.get(key);
}

const toml::node& FileTable::require(std::string_view key, std::string_view expected) {
  if (const toml::node* const node = find(key)) return *node;
  for (const auto& [other, node] : table_)  // kernel_size
    if (!accepts(other.str()) && !nearest_name(other.str(), {{key}}).empty())
      fail(other.str(), in_quotes(other.str()) + " is unknown." + did_you_mean(other.str(), {{key}}));
  fail(key, "'" + std::string(key) + "' is missing, expected " + std::string(expected));
}

void FileTable::fail_type(std::string_view key, const toml::node& node, std::string_view expected) const {
  fail(key, "'" + std::string(key) + "' is " + shown(node) + ", expected " + std::string(expected));
}

std::int64_t FileTable::integer(std::string_view key, std::int64_t least, std::optional<std::int64_t> otherwise,
                                std::int64_t most) {
  const toml::node* const node = otherwise ? find(key) : &require(key, kInteger);
  if (node == nullptr) return *otherwise;
  const auto* const expression = node->as_string();
  if (!expression && !node->is_integer()) fail_type(key, *node, kInteger);
  if (values_ == nullptr) return otherwise.value_or(std::max<std::int64_t>(least, 1));
  const std::string stated = "'" + std::string(key) + (expression ? "' = " + shown(*node) : "'");
  std::int64_t value = 0;
  try {
    value = expression ? evaluate(expression->get(), *values_) : node->as_integer()->get();
  } catch (const InvalidArgument& error) {
    fail(key, stated + ": " + error.what());
  }
  if (value >= least && value <= most) return value;
  fail(key, stated + " is " + std::to_string(value) + ", expected " + std::to_string(least) +
                (value < least && most == kMost ? " or more" : " to " + std::to_string(most)));
}

double FileTable::number(std::string_view key, double least, double most, std::optional<double> otherwise) {
  const std::string expected = "a number from " + shortest(least) + " to " + shortest(most);
  const toml::node* const node = otherwise ? find(key) : &require(key, expected);
  if (node == nullptr) return *otherwise;
  const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value) fail_type(key, *node, expected);
  if (*value >= least && *value <= most) return *value;  // NaN is not
  fail_type(key, *node, expected);
}

bool FileTable::flag(std::string_view key, bool otherwise) {
  const toml::node* const node = find(key);
  if (node == nullptr) return otherwise;
  if (const auto* value = node->as_boolean()) return value->get();
  fail_type(key, *node, "true or false");
}

std::size_t FileTable::choice(std::string_view key, std::span<const std::string_view> choices) {
  if (find(key) == nullptr) return 0;
  const std::string value = text(key).text;
  if (const auto found = std::ranges::find(choices, value); found != choices.end())
    return static_cast<std::size_t>(found - choices.begin());
  std::string list;
  for (const std::string_view each : choices) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(key, "'" + std::string(key) + "' is " + in_quotes(value) + ", expected one of " + list + "." +
                did_you_mean(value, std::vector(choices.begin(), choices.end())));
}

FileText FileTable::text(std::string_view key, std::string_view expected) {
  const toml::node& node = require(key, expected);
  if (const auto* value = node.as_string()) return {value->get(), line(key)};
  fail_type(key, node, expected);
}

std::vector<FileText> FileTable::texts(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr) return {};
  const toml::array* const list = node->as_array();
  if (list == nullptr) fail_type(key, *node, "a list of names");
  std::vector<FileText> all;
  for (const toml::node& each : *list) {
    const auto* const value = each.as_string();
    if (value == nullptr)
      fail_at(each.source().begin.line, "'" + std::string(key) + "' has " + shown(each) + ", expected names in quotes");
    all.push_back({value->get(), each.source().begin.line});
  }
  return all;
}

const toml::table* FileTable::table(std::string_view key) {
  const toml::node* const node = find(key);
  if (node != nullptr && !node->is_table()) fail_type(key, *node, "a table");
  return node == nullptr ? nullptr : node->as_table();
}

const toml::array& FileTable::list(std::string_view key) {
  constexpr std::string_view kExpected = "a list of layers";
  const toml::node& node = require(key, kExpected);
  const toml::array* const list = node.as_array();
  if (list == nullptr) fail_type(key, node, kExpected);
  if (list->empty()) fail(key, "'" + std::string(key) + "' is empty, expected at least one layer");
  return *list;
}

std::vector<std::string> FileTable::all() const {
  std::map<std::pair<std::size_t, std::size_t>, std::string> in_order;
  for (const auto& [key, node] : table_) {
    const toml::source_position& at = key.source().begin;
    in_order.emplace(std::pair(at.line, at.column), key.str());
  }
  std::vector<std::string> keys;
  for (auto& [at, key] : in_order) keys.push_back(std::move(key));
  return keys;
}

std::size_t FileTable::line(std::string_view key) const {
  const auto found = table_.find(key);
  const auto line = found == table_.end() ? table_.source().begin.line : found->first.source().begin.line;
  return std::max<std::size_t>(line, 1);
}

void FileTable::finish() const {
  for (const auto& [key, node] : table_) {
    if (accepts(key.str())) continue;
    std::string list;
    for (const std::string& each : accepted_) list += (list.empty() ? "" : ", ") + each;
    const std::vector<std::string_view> names(accepted_.begin(), accepted_.end());
    fail(key.str(),
         in_quotes(key.str()) + " is unknown, expected one of " + list + "." + did_you_mean(key.str(), names));
  }
}

}  // namespace gradring::nn
