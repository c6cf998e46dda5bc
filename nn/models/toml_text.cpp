// SPDX-License-Identifier: Apache-2.0
#include "nn/models/toml_text.h"

#include <algorithm>

#include "kernels/base/in_quotes.h"
#include "kernels/base/printable.h"

namespace gradring::nn {
namespace {

/// Options are not nested at all, and layers little, so this leaves room for paths. A table takes a few hundred bytes of
/// stack.
constexpr std::size_t kMostNested = 4096;

/// Every level of nesting takes one of these characters, in a key (a.b.c), a table's head or a value.
bool nests(char c) { return c == '.' || c == '[' || c == '{'; }

/// The characters of the comment or string at the start of `text`, as the parser sees it; 0 for other text. Of one
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

/// How the parser words an error, "Error while parsing SCOPE: DETAIL", and how we do.
struct Wording {
  std::string_view scope;   ///< empty: any
  std::string_view detail;  ///< its beginning
  std::string_view ours;
};

constexpr std::string_view kEnd = "encountered end-of-file";

constexpr Wording kWordings[] = {
    {"array", kEnd, "the file ends in a list, expected ]"},
    {"inline table", kEnd, "the file ends in a table, expected }"},
    {"string", kEnd, "the file ends in a string, expected a quote"},
    {"literal string", kEnd, "the file ends in a string, expected a quote"},
    {"", kEnd, "the file ends too early"},
    {"string", "unescaped control", "a string has a line break or another control character, expected a quote before"},
    {"literal string", "control", "a string has a line break or another control character, expected a quote before"},
    {"string", "unknown escape", "a string has an unknown escape, expected \\\\ for a backslash"},
    {"comment", "control", "a comment has a control character"},
    {"array", "expected comma", "expected , or ] in a list"},
    {"array", "expected value", "expected a value or ] in a list"},
    {"inline table", "expected comma", "expected , or } in a table"},
    {"inline table", "expected key-value pair, saw closing", "a table has a comma before its }"},
    {"inline table", "expected key", "expected a key or } in a table, on the same line"},
    {"key-value pair", "expected '='", "expected = after a key"},
    {"key-value pair", "expected value", "expected a value after ="},
    {"key-value pair", "expected a comment", "expected the end of the line after a value"},
    {"key", "expected bare key", "expected a key"},
    {"table header", "expected ']'", "expected ] after the name of a table"},
    {"root table", "expected keys", "expected a key, [TABLE] or a comment"},
    {"", "expected '\\n' after '\\r'", "a line ends with a carriage return only"},
};

/// What stands at a position of the text, up to a character that ends a value.
std::string_view word_at(std::string_view text, const toml::source_position& position) {
  constexpr std::string_view kEnds = " \t\r\n,[]{}=#\"'";
  for (toml::source_index line = 1; line < position.line; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  std::size_t at = 0;
  for (toml::source_index column = 1; column < position.column && at < text.size(); ++column)
    at += first_character(text.substr(at)).bytes;
  if (at == text.size() || kEnds.find(text[at]) != kEnds.npos) --at;
  if (at >= text.size()) return {};
  const std::size_t before = text.find_last_of(kEnds, at);
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  return text.substr(begin, text.find_first_of(kEnds, begin) - begin);
}

/// ", found 'x'": what the parser says it saw.
std::string found_in(std::string_view detail) {
  const std::size_t saw = detail.find("saw ");
  if (saw == detail.npos || detail.ends_with("(dangling comma)")) return {};
  const std::string_view found = detail.substr(saw + 4);
  return ", found " + (found == "'\\n'" || found == "'\\r'" ? "the end of the line" : std::string(found));
}

/// The parser's description in our words.
std::string reason_of(const toml::parse_error& error, std::string_view text) {
  constexpr std::string_view kPrefix = "Error while parsing ";
  std::string_view detail = error.description();
  if (!detail.starts_with(kPrefix))
    return detail.find("utf-8") == detail.npos ? std::string(detail) : "a character is not UTF-8";
  const std::size_t colon = detail.find(": ");
  const std::string_view scope = detail.substr(kPrefix.size(), colon - kPrefix.size());
  detail.remove_prefix(std::min(colon + 2, detail.size()));
  for (const Wording& each : kWordings)
    if ((each.scope.empty() || each.scope == scope) && detail.starts_with(each.detail))
      return std::string(each.ours) + found_in(detail);
  const std::string word = in_quotes(word_at(text, error.source().begin));
  if (detail.starts_with("cannot redefine")) {
    const std::size_t quote = detail.find('\'');
    return (quote == detail.npos ? word : std::string(detail.substr(quote))) + " is defined twice";
  }
  if (detail.ends_with("in 64 bits")) return word + " is outside the range of 64-bit integers";
  const bool is_part = scope == "table header" || scope == "string" || scope.ends_with("sequence") || scope == "key";
  if (is_part) return std::string(scope) + ": " + std::string(detail);
  return word + " is no value, expected text in quotes, a number, true or false";
}

}  // namespace

toml::table parse_toml(std::string_view text) {
  check_nesting(text);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw TomlError(reason_of(error, text), error.source().begin.line);
  }
}

}  // namespace gradring::nn
