// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    end,
    identifier,   ///< add, %r1, $L__BB0_2, _
    directive,    ///< .reg, .s32: the words behind an opcode are of this kind, too
    number,       ///< 12, 0x1F, 0f3F800000
    string,       ///< "a path", with its quotes
    punctuation,  ///< one character, or "::"
  };
  Kind kind = Kind::end;
  std::string_view text;

  bool is(std::string_view other) const { return text == other; }
};

/// What an integer of PTX says: 12, 0x1F, 017, 0b11, each also with a U.
///
/// Errors    false if it is not a number, or needs more than 64 bits.
bool parse_integer(std::string_view text, std::uint64_t& value);

/// Cuts a part of a module's text into tokens, without blanks and comments. Views are into the text.
///
/// Errors    PtxError, with the line in the whole text.
class Lexer {
 public:
  /// Reads [begin, end) of `module`.
  Lexer(std::string_view module, std::size_t begin, std::size_t end);

  /// The next token, which stays.
  const Token& peek() const { return token_; }
  Token next() {
    const Token taken = token_;
    last_end_ = position_;
    read_token();
    return taken;
  }
  /// Takes the next token if it is `text`.
  bool accept(std::string_view text) {
    if (!token_.is(text) || token_.kind == Token::Kind::end) return false;
    next();
    return true;
  }
  void expect(std::string_view text);
  Token expect(Token::Kind kind, std::string_view what);
  /// An integer without a sign.
  std::uint64_t expect_integer() {
    std::uint64_t value = 0;
    if (token_.kind != Token::Kind::number || !parse_integer(token_.text, value))
      fail(joined("an integer was expected before '", token_.text, "'"));
    next();
    return value;
  }

  /// Skips the next token, a '{', and what follows up to its '}'.
  void skip_braces();

  /// Where the next token begins, and where the one before it ended.
  std::size_t begin() const { return position_of(token_.text); }
  std::size_t end_of_last() const { return last_end_; }
  /// The text from the begin of a token to the end of the last one.
  std::string_view text_from(std::string_view token) const { return text(position_of(token), last_end_); }

  /// Throws a PtxError for the next token, or for `part`, which is in the text.
  [[noreturn]] void fail(const std::string& message) const { fail_at(token_.text, message); }
  [[noreturn]] void fail_at(std::string_view part, const std::string& message) const;

 private:
  std::size_t position_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - module_.data());
  }
  std::string_view text(std::size_t begin, std::size_t end) const { return module_.substr(begin, end - begin); }
  bool skip_comment();
  void skip_blanks();
  void read_token();
  /// Of the token at position_.
  std::size_t end_of_token(Token::Kind& kind) const;

  std::string_view module_;
  std::size_t position_;
  std::size_t end_;
  std::size_t last_end_ = 0;
  Token token_;
};

}  // namespace gradring::ptx
