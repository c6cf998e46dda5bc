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

Token Lexer::next() {
  const Token taken = token_;
  last_end_ = position_;
  read_token();
  return taken;
}

bool Lexer::accept(std::string_view text) {
  if (!token_.is(text) || token_.kind == Token::Kind::end) return false;
  next();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail("'" + std::string(text) + "' was expected before '" + std::string(token_.text) + "'");
}

Token Lexer::expect(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) fail(std::string(what) + " was expected before '" + std::string(token_.text) + "'");
  return next();
}

std::uint64_t Lexer::expect_integer() {
  std::uint64_t value = 0;
  if (token_.kind != Token::Kind::number || !parse_integer(token_.text, value))
    fail("an integer was expected before '" + std::string(token_.text) + "'");
  next();
  return value;
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

void Lexer::fail_at(std::string_view place, const std::string& message) const {
  const std::string_view before = module_.substr(0, position_of(place));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  std::string text(module_.substr(begin, module_.find_first_of("\n\r", before.size()) - begin));
  text.erase(0, text.find_first_not_of(" \t"));
  constexpr std::size_t kLongest = 300;  // mangled names are long
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  throw PtxError("PTX line " + std::to_string(line) + ": " + message + ": " + text);
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
  const auto at = [&](std::size_t place) { return place < end_ ? module_[place] : '\0'; };
  const char first = at(position_);
  std::size_t place = position_ + 1;
  if (is_digit(first)) {
    kind = Token::Kind::number;
    const bool is_decimal = first != '0' || at(place) == '.' || is_digit(at(place));
    for (;; ++place) {
      const bool is_sign = is_decimal && (at(place) == '+' || at(place) == '-');
      const bool behind_exponent = at(place - 1) == 'e' || at(place - 1) == 'E';
      if (!is_word(at(place)) && at(place) != '.' && !(is_sign && behind_exponent)) return place;
    }
  }
  if (first == '"') {
    kind = Token::Kind::string;
    const std::size_t close = module_.find('"', place);
    if (close >= end_) fail_at(module_.substr(position_), "a string is never closed");
    return close + 1;
  }
  if (is_word(first) || first == '%' || (first == '.' && is_word(at(place)))) {
    kind = first == '.' ? Token::Kind::directive : Token::Kind::identifier;
    while (is_word(at(place))) ++place;
    return place;
  }
  kind = Token::Kind::punctuation;
  return first == ':' && at(place) == ':' ? place + 1 : place;
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
