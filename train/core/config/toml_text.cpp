// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/toml_text.h"

namespace gradring::train {
namespace {

/// Options are not nested at all, so this leaves room for comments and paths. A table takes a few hundred bytes of
/// stack.
constexpr std::size_t kMostNested = 4096;

/// Every level of nesting takes one of these characters, in a key (a.b.c), a table's head or a value.
bool nests(char c) { return c == '.' || c == '[' || c == '{'; }

void check_nesting(std::string_view text) {
  std::size_t nested = 0, line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (nests(c) && ++nested > kMostNested)
      throw TomlError("more than " + std::to_string(kMostNested) + " dots and brackets", line);
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

}  // namespace gradring::train
