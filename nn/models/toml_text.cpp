// SPDX-License-Identifier: Apache-2.0
#include "nn/models/toml_text.h"

#include <algorithm>

namespace gradring::nn {
namespace {

/// Options are not nested at all, and layers little, so this leaves room for paths. A table takes a few hundred bytes of
/// stack.
constexpr std::size_t kMostNested = 4096;

/// Every level of nesting takes one of these characters, in a key (a.b.c), a table's head or a value.
bool nests(char c) { return c == '.' || c == '[' || c == '{'; }

/// The characters of the comment or string at the start of `text`, as the parser sees it; 0 if there is none. Of one
/// without an end, which the parser rejects, those that cannot end it.
std::size_t skipped(std::string_view text) {
  const auto up_to = [&](std::size_t end) { return std::min(end, text.size()); };
  if (text.front() == '#') return up_to(text.find('\n'));
  if (text.front() != '"' && text.front() != '\'') return 0;
  const char quote = text.front();
  const std::string three(3, quote);
  const bool many_lines = text.starts_with(three);
  for (std::size_t i = many_lines ? 3 : 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (!many_lines && (text[i] == quote || text[i] == '\n'))
      return text[i] == quote ? i + 1 : i;
    else if (many_lines && text.substr(i).starts_with(three)) {
      const std::size_t end = text.find_first_not_of(quote, i);  // up to two quotes belong to the string
      return std::min(up_to(end), i + 5);
    }
  }
  return text.size();
}

void check_nesting(std::string_view text) {
  std::size_t nested = 0, line = 1;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t length = skipped(text.substr(i)); length > 0) {
      line += static_cast<std::size_t>(std::ranges::count(text.substr(i, length), '\n'));
      i += length;
      continue;
    }
    if (text[i] == '\n') ++line;
    if (nests(text[i]) && ++nested > kMostNested)
      throw TomlError("more than " + std::to_string(kMostNested) + " dots and brackets", line);
    ++i;
  }
}

}  // namespace

toml::table parse_toml(std::string_view text) {
  check_nesting(text);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw TomlError(std::string(error.description()), error.source().begin.line);
  }
}

}  // namespace gradring::nn
