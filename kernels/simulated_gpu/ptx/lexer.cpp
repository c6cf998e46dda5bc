// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/lexer.h"

#include <algorithm>
#include <charconv>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::ptx {
namespace {

// Those of <cctype> ask the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

Lexer::Lexer(std::string_view module, std::size_t begin, std::size_t end)
    : module_(module), position_(begin), end_(end), last_end_(begin) {
  read_token();
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail(joined("'", text, "' was expected before '", token_.text, "'"));
}

Token Lexer::expect(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) fail(joined(what, " was expected before '", token_.text, "'"));
  return next();
}

void Lexer::skip_braces() {
  const std::string_view open = token_.text;
  std::size_t depth = 0;
  position_ = begin();
  while (position_ < end_) {  // not by tokens: there are megabytes between braces
    const char c = module_[position_];
    if (c == '/' && skip_comment()) continue;
    if (c == '"') position_ = std::min(module_.find('"', position_ + 1), end_ - 1);
    ++position_;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      last_end_ = position_;
      read_token();
      return;
    }
  }
  fail_at(open, "'{' is never closed");
}

void Lexer::fail_at(std::string_view part, const std::string& message) const {
  const std::string_view before = module_.substr(0, position_of(part));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  std::string text(module_.substr(begin, module_.find_first_of("\n\r", before.size()) - begin));
  text.erase(0, text.find_first_not_of(" \t"));
  constexpr std::size_t kLongest = 300;  // mangled names are long
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  throw PtxError(joined("PTX line ", line, ": ", message, ": ", text));
}

bool Lexer::skip_comment() {
  if (module_.compare(position_, 2, "//") == 0) {
    position_ = std::min(module_.find('\n', position_), end_);
    return true;
  }
  if (module_.compare(position_, 2, "/*") != 0) return false;
  const std::size_t close = module_.find("*/", position_ + 2);
  if (close >= end_) fail_at(module_.substr(position_), "a comment is never closed");
  position_ = close + 2;
  return true;
}

void Lexer::skip_blanks() {
  while (position_ < end_) {
    if (is_blank(module_[position_]))
      ++position_;
    else if (module_[position_] != '/' || !skip_comment())
      return;
  }
}

void Lexer::read_token() {
  skip_blanks();
  const std::size_t begin = position_;
  token_.kind = Token::Kind::end;
  if (position_ < end_) position_ = end_of_token(token_.kind);
  token_.text = text(begin, position_);
}

std::size_t Lexer::end_of_token(Token::Kind& kind) const {
  const auto at = [&](std::size_t index) { return index < end_ ? module_[index] : '\0'; };
  const char first = at(position_);
  std::size_t index = position_ + 1;
  if (is_digit(first)) {
    kind = Token::Kind::number;
    const bool is_decimal = first != '0' || at(index) == '.' || is_digit(at(index));
    for (;; ++index) {
      const bool is_sign = is_decimal && (at(index) == '+' || at(index) == '-');
      const bool behind_exponent = at(index - 1) == 'e' || at(index - 1) == 'E';
      if (!is_word(at(index)) && at(index) != '.' && !(is_sign && behind_exponent)) return index;
    }
  }
  if (first == '"') {
    kind = Token::Kind::string;
    const std::size_t close = module_.find('"', index);
    if (close >= end_) fail_at(module_.substr(position_), "a string is never closed");
    return close + 1;
  }
  if (is_word(first) || first == '%' || (first == '.' && is_word(at(index)))) {
    kind = first == '.' ? Token::Kind::directive : Token::Kind::identifier;
    while (is_word(at(index))) ++index;
    return index;
  }
  kind = Token::Kind::punctuation;
  return first == ':' && at(index) == ':' ? index + 1 : index;
}

bool parse_integer(std::string_view text, std::uint64_t& value) {
  if (text.ends_with('U')) text.remove_suffix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with("0b") || text.starts_with("0B")) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
    text.remove_prefix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace gradring::ptx
