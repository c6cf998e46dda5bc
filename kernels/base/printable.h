// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gradring {

/// The first character of a text.
struct Character {
  std::size_t bytes = 1;
  std::optional<char32_t> code{};  ///< empty: a byte that is not UTF-8

  /// Whether it is shown. Not shown but obeyed, by a terminal or a browser, are control characters (C0, DEL, C1), line
  /// and paragraph separators, and controls of the text's direction (Unicode's Bidi_Control); these can hide or reorder
  /// what is around them.
  bool is_printable() const;
};

/// `text` is not empty.
///
/// Source    RFC 3629
Character first_character(std::string_view text);

/// Bytes at the start of `text` that printable() leaves as they are.
std::size_t printable_bytes(std::string_view text, std::string_view kept = {});

/// `\x1b`, `\u202e`: a character that is not printable, as Python writes it; other than ASCII also as TOML and JSON do. A
/// byte that is not UTF-8 as `\xff`.
std::string escape_of(const Character& character, char first_byte);

/// `text` with escapes in the place of characters that are not printable, but for the ASCII characters in `kept`.
std::string printable(std::string_view text, std::string_view kept = {});

/// The same for JSON, whose strings have \u escapes: equal for a parser. `json` is UTF-8.
std::string printable_json(std::string_view json);

/// A mangled name as C++ writes it; any other name as it is.
std::string demangled(const char* name);

}  // namespace gradring
