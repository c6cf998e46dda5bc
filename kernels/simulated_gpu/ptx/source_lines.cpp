// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/source_lines.h"

#include <limits>

namespace gradring::ptx {
namespace {

unsigned expect_unsigned(Lexer& lexer) {
  const std::string_view number = lexer.peek().text;
  const std::uint64_t value = lexer.expect_integer();
  if (value > std::numeric_limits<unsigned>::max()) lexer.fail_at(number, "a place in a source file is too large");
  return static_cast<unsigned>(value);
}

}  // namespace

void SourceLines::read(Lexer& lexer) {
  const auto place = [&] {
    const unsigned file = expect_unsigned(lexer), line = expect_unsigned(lexer);
    return Place{file, line, expect_unsigned(lexer)};
  };
  const Place here = place();
  source_ = {.file = std::get<0>(here), .line = std::get<1>(here)};
  called_from_ = source_;
  if (lexer.accept(",")) {
    lexer.expect("function_name");
    lexer.expect(Token::Kind::identifier, "a label");
    if (lexer.accept("+")) lexer.expect_integer();
    lexer.expect(",");
    lexer.expect("inlined_at");
    const Place caller = place();
    const auto known = lines_of_kernel_.find(caller);
    called_from_ = known == lines_of_kernel_.end() ? Source{std::get<0>(caller), std::get<1>(caller)} : known->second;
  }
  lines_of_kernel_[here] = called_from_;
}

}  // namespace gradring::ptx
