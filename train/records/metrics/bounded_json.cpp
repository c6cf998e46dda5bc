// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/bounded_json.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLevels = 64;
constexpr int kMostMembers = 1024;  // of an object
constexpr int kMostValues = 1 << 20;

/// Which bound `text` exceeds; empty if none. Counts what is outside of strings, in any text.
std::string excess_of(std::string_view text) {
  std::array<int, kMostLevels + 1> members{};  // of the open object of each level
  std::size_t level = 0;
  int values = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '\\') ++i;
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '[' || c == '{') {
      if (++level > kMostLevels) return fmt::format("it has more than {} levels", kMostLevels);
      members[level] = 0;
    }
    if ((c == ']' || c == '}') && level > 0) --level;
    if (c == ':' && ++members[level] > kMostMembers)
      return fmt::format("an object has more than {} members", kMostMembers);
    if (c == ',' && ++values > kMostValues) return fmt::format("it has more than {} values", kMostValues);
  }
  return {};
}

}  // namespace

std::optional<Json> parse_bounded(std::string_view text, std::string& problem) {
  problem = excess_of(text);
  if (!problem.empty()) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return json;
  problem = "it is not JSON";
  return std::nullopt;
}

std::string shown_value(const Json& value) {
  constexpr std::size_t kMostShown = 40;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMostShown ? text : fmt::format("a text of {} bytes", text.size());
}

}  // namespace gradring::train
