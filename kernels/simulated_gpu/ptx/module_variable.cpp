// SPDX-License-Identifier: Apache-2.0
// Variables of a module in global and constant memory, and their initial values.
#include <bit>
#include <cstring>

#include "kernels/simulated_gpu/ptx/kernel_reader.h"

namespace gradring::ptx {
namespace {

/// The bits of a number as an element of this size has them.
std::uint64_t bits_in(const Lexer& lexer, const Operand& number, std::size_t bytes) {
  if (!number.is_float) return number.bits;
  if (bytes == (number.is_double ? sizeof(double) : sizeof(float))) return number.bits;
  if (number.is_double && bytes == sizeof(float))
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
  lexer.fail("an initial value is a floating-point number of another size than the variable's elements");
}

/// Reads what follows '=', element by element. Braces within braces only group elements.
class InitialValue {
 public:
  InitialValue(Lexer& lexer, const Declaration& declaration, ModuleVariable& made)
      : lexer_(lexer),
        element_bytes_(declaration.element_bytes),
        has_open_end_(declaration.has_open_end),
        made_(made) {}

  void read() {
    std::size_t depth = 0;
    do {
      while (lexer_.accept("{")) ++depth;
      if (!lexer_.peek().is("}")) element();
      for (; depth > 0 && lexer_.accept("}"); --depth) {
      }
    } while (depth > 0 && (lexer_.accept(",") || lexer_.peek().is("{")));
    if (depth > 0) lexer_.expect("}");
  }

 private:
  void element() {
    if (has_open_end_) made_.bytes = end_ + element_bytes_;
    if (element_bytes_ > made_.bytes - end_)
      lexer_.fail(joined("variable ", made_.name, " has more initial values than elements"));
    const std::size_t at = end_;
    end_ += element_bytes_;
    if (lexer_.peek().kind == Token::Kind::identifier) return reference(at);
    const std::uint64_t bits = bits_in(lexer_, read_immediate(lexer_), element_bytes_);
    if (bits == 0) return;
    made_.initial.resize(end_);
    std::memcpy(&made_.initial[at], &bits, element_bytes_);
  }

  /// generic(counter)+4: the generic address, which is the address in global memory here, too.
  void reference(std::size_t at) {
    const bool is_generic = lexer_.accept("generic");
    if (is_generic) lexer_.expect("(");
    ModuleVariable::Reference made{.at = at, .bytes = element_bytes_};
    made.name = lexer_.expect(Token::Kind::identifier, "the name of a variable or function").text;
    offset(made);
    if (is_generic) lexer_.expect(")");
    offset(made);
    if (element_bytes_ != sizeof(std::uint64_t)) lexer_.fail_at(made.name, "an address in fewer than 64 bits");
    made_.references.push_back(made);
  }

  void offset(ModuleVariable::Reference& reference) {
    while (lexer_.peek().is("+") || lexer_.peek().is("-")) {
      const bool is_negative = lexer_.next().is("-");
      const auto term = static_cast<std::int64_t>(lexer_.expect_integer());
      reference.offset += is_negative ? -term : term;
    }
  }

  Lexer& lexer_;
  std::size_t element_bytes_;
  bool has_open_end_;
  ModuleVariable& made_;
  std::size_t end_ = 0;  // of the elements so far
};

}  // namespace

ModuleVariable read_module_variable(Lexer& lexer) {
  ModuleVariable made;
  if (lexer.accept(".attribute")) {
    lexer.expect("(");
    made.is_managed = lexer.accept(".managed");
    if (!made.is_managed) lexer.fail(joined("attribute '", lexer.peek().text, "' of a variable is not known here"));
    lexer.expect(")");
  }
  const Declaration declaration = read_declaration(lexer);
  static_cast<Variable&>(made) = declaration;
  if (lexer.accept("=")) InitialValue(lexer, declaration, made).read();
  lexer.expect(";");
  return made;
}

}  // namespace gradring::ptx
