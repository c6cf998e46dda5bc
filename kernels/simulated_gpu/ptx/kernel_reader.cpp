// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/kernel_reader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/simulated_gpu/ptx/lexer.h"

namespace gradring::ptx {
namespace {

unsigned expect_unsigned(Lexer& lexer) {
  const std::string_view number = lexer.peek().text;
  const std::uint64_t value = lexer.expect_integer();
  if (value > std::numeric_limits<unsigned>::max()) lexer.fail_at(number, "a position in a source file is too large");
  return static_cast<unsigned>(value);
}

/// Follows the .loc of a kernel: which C++ line comes next, and from which line of the kernel its function was called.
class SourceLines {
 public:
  /// Reads what follows .loc: "1 86 3", or "2 12 5, function_name $L__info_string1, inlined_at 1 86 3".
  void read(Lexer& lexer);

  Source source() const { return source_; }
  Source called_from() const { return called_from_; }

 private:
  using Location = std::tuple<unsigned, unsigned, unsigned>;  ///< file, line, column

  Source source_;
  Source called_from_;
  /// The line of the kernel for each location so far: an inlined function may be inlined into an inlined one.
  std::map<Location, Source> lines_of_kernel_;
};

void SourceLines::read(Lexer& lexer) {
  const auto location = [&] {
    const unsigned file = expect_unsigned(lexer), line = expect_unsigned(lexer);
    return Location{file, line, expect_unsigned(lexer)};
  };
  const Location here = location();
  source_ = {.file = std::get<0>(here), .line = std::get<1>(here)};
  called_from_ = source_;
  if (lexer.accept(",")) {
    lexer.expect("function_name");
    lexer.expect(Token::Kind::identifier, "a label");
    if (lexer.accept("+")) lexer.expect_integer();
    lexer.expect(",");
    lexer.expect("inlined_at");
    const Location caller = location();
    const auto known = lines_of_kernel_.find(caller);
    called_from_ = known == lines_of_kernel_.end() ? Source{std::get<0>(caller), std::get<1>(caller)} : known->second;
  }
  lines_of_kernel_[here] = called_from_;
}

class BodyReader {
 public:
  /// `function`: null for the kernel itself.
  BodyReader(std::string_view module, std::size_t begin, std::size_t end, Kernel& kernel, KernelVariables& variables,
             Function* function)
      : kernel_(kernel), function_(function), lexer_(module, begin, end), variables_(variables) {
    variables_.begin_body();
  }

  Body read_kernel() {
    kernel_.name = lexer_.expect(Token::Kind::identifier, "the name of a kernel").text;
    if (lexer_.accept("(")) parameters();
    while (!lexer_.peek().is("{")) limit();
    read_statements();
    return std::move(body_);
  }

  Body read_function() {
    function_->own_begin = kernel_.call_parameter_bytes;
    function_->first_register = kernel_.registers.size();
    if (lexer_.accept("(")) function_->results = function_parameters();
    lexer_.expect(Token::Kind::identifier, "the name of a function");
    if (lexer_.accept("(")) function_->parameters = function_parameters();
    while (lexer_.peek().kind == Token::Kind::directive) limit();
    if (!lexer_.accept(";")) read_statements();
    function_->own_end = kernel_.call_parameter_bytes;
    function_->end_register = kernel_.registers.size();
    return std::move(body_);
  }

 private:
  void read_statements() {
    lexer_.expect("{");
    while (statement()) {
    }
    for (Instruction& instruction : body_.code) resolve_labels(instruction.operands);
  }

  void parameters() {
    if (lexer_.accept(")")) return;
    do {
      lexer_.expect(".param");
      declare(read_declaration(lexer_, true), kernel_.parameters, kernel_.parameter_bytes);
    } while (lexer_.accept(","));
    lexer_.expect(")");
  }

  /// Of a function: their indexes.
  std::vector<std::size_t> function_parameters() {
    std::vector<std::size_t> made;
    if (lexer_.accept(")")) return made;
    do {
      if (!lexer_.accept(".param")) lexer_.fail("parameters of functions must be .param here");
      made.push_back(declare_call_parameter(read_declaration(lexer_, true)));
    } while (lexer_.accept(","));
    lexer_.expect(")");
    return made;
  }

  std::size_t declare_call_parameter(const Declaration& declaration) {
    check_size(declaration);
    const std::size_t index = variables_.add_call_parameter(declaration);
    if (!scopes_.declare_parameter(declaration.name, index)) fail_twice(declaration);
    return index;
  }

  /// A directive between the parameters and the body.
  void limit() {
    const Token word = lexer_.peek();
    if (word.is(".maxntid") || word.is(".reqntid")) {
      lexer_.next();
      most_threads();
    } else if (word.is(".reqnctapercluster")) {
      lexer_.next();
      cluster();
    } else if (word.is(".explicitcluster")) {
      lexer_.next();
      kernel_.has_explicit_cluster = true;
    } else if (word.is(".minnctapersm") || word.is(".maxnreg") || word.is(".maxclusterrank")) {  // for ptxas
      lexer_.next();
      lexer_.expect_integer();
    } else if (word.is(".noreturn")) {
      lexer_.next();
    } else if (word.is(".pragma")) {
      pragma();
    } else {
      lexer_.fail(joined("directive '", word.text, "' of a kernel is not known here"));
    }
  }

  /// "2, 1, 1"
  void cluster() {
    kernel_.cluster = {1, 1, 1};
    std::size_t axis = 0;
    do {
      const std::string_view number = lexer_.peek().text;
      const std::uint64_t extent = lexer_.expect_integer();
      if (extent == 0 || extent > kMostBlocksOfACluster || axis == kernel_.cluster.size())
        lexer_.fail_at(number, joined("a cluster has 1 to ", kMostBlocksOfACluster, " blocks, on up to 3 axes"));
      kernel_.cluster[axis++] = static_cast<unsigned>(extent);
    } while (lexer_.accept(","));
  }

  /// "16, 16": the product.
  void most_threads() {
    constexpr std::uint64_t kMost = 1 << 16;
    std::uint64_t product = 1;
    do {
      const std::string_view number = lexer_.peek().text;
      const std::uint64_t extent = lexer_.expect_integer();
      if (extent == 0 || extent > kMost / product)
        lexer_.fail_at(number, joined("the threads of a block must be from 1 to ", kMost));
      product *= extent;
    } while (lexer_.accept(","));
    kernel_.most_threads = static_cast<unsigned>(product);
  }

  /// False: it was the brace that ends the kernel.
  bool statement() {
    const Token first = lexer_.peek();
    if (first.kind == Token::Kind::directive) {
      directive();
    } else if (first.is("@")) {
      lexer_.next();
      const Instruction::Guard guard = operands_.guard();
      instruction(first.text, guard, lexer_.expect(Token::Kind::identifier, "an opcode").text);
    } else if (first.kind == Token::Kind::identifier) {
      lexer_.next();
      if (lexer_.accept(":"))
        label(first.text);
      else
        instruction(first.text, std::nullopt, first.text);
    } else if (lexer_.accept("{")) {
      scopes_.open();
    } else if (lexer_.accept("}")) {
      if (scopes_.is_outermost()) return false;
      scopes_.close();
    } else if (!lexer_.accept(";")) {
      lexer_.fail(joined("an instruction was expected before '", first.text, "'"));
    }
    return true;
  }

  /// Behind `name`, the part of an opcode before its first dot. `begin`: the first token.
  void instruction(std::string_view begin, std::optional<Instruction::Guard> guard, std::string_view name) {
    if (name[0] < 'a' || name[0] > 'z') lexer_.fail_at(name, joined("an opcode was expected before '", name, "'"));
    while (lexer_.begin() == lexer_.end_of_last()) {
      if (lexer_.accept("::"))
        part_of_word();
      else if (lexer_.peek().kind == Token::Kind::directive)
        lexer_.next();
      else
        break;
    }
    Instruction& made = body_.code.emplace_back();
    made.guard = guard;
    made.source = lines_.source();
    made.called_from = lines_.called_from();
    made.opcode = lexer_.text_from(name);
    for (std::size_t word = 0; word < made.opcode.size();) {
      const std::size_t dot = std::min(made.opcode.find('.', word), made.opcode.size());
      made.words.push_back(made.opcode.substr(word, dot - word));
      word = dot + 1;
    }
    made.operands = operands_.read(made.words);
    lexer_.expect(";");
    made.text = lexer_.text_from(begin);
    for (const Operand& operand : made.operands)
      if (operand.kind == Operand::Kind::function) body_.callees.push_back(operand.target);
    body_.calls_indirectly |= made.words[0] == "call" && made.operands[1].kind == Operand::Kind::reg;
  }

  /// What follows "::", as in L2::128B.
  void part_of_word() {
    if (lexer_.peek().kind != Token::Kind::number)
      lexer_.expect(Token::Kind::identifier, "a word");
    else
      lexer_.next();
  }

  void label(std::string_view name) {
    if (lexer_.accept(".callprototype") || lexer_.accept(".calltargets")) {
      while (!lexer_.peek().is(";") && lexer_.peek().kind != Token::Kind::end) lexer_.next();
      return lexer_.expect(";");
    }
    const bool is_new = lexer_.accept(".branchtargets") ? scopes_.declare_targets(name, labels())
                                                        : scopes_.declare_label(name, body_.code.size());
    if (!is_new) lexer_.fail_at(name, joined("label ", name, " is declared twice"));
  }

  std::vector<std::string_view> labels() {
    std::vector<std::string_view> made;
    do {
      made.push_back(lexer_.expect(Token::Kind::identifier, "a label").text);
    } while (lexer_.accept(","));
    lexer_.expect(";");
    return made;
  }

  void directive() {
    if (lexer_.peek().is(".pragma")) return pragma();
    if (lexer_.accept(".loc")) return lines_.read(lexer_);
    if (lexer_.accept(".reg")) return registers();
    if (lexer_.accept(".shared"))
      declare_shared(read_declaration(lexer_));
    else if (lexer_.accept(".local"))
      declare(read_declaration(lexer_), function_ == nullptr ? kernel_.local : function_->local,
              function_ == nullptr ? kernel_.local_bytes : function_->local_bytes);
    else if (lexer_.accept(".param"))
      declare_call_parameter(read_declaration(lexer_));
    else
      lexer_.fail(joined("directive '", lexer_.peek().text, "' in a kernel is not known here"));
    lexer_.expect(";");
  }

  void declare(const Declaration& declaration, std::vector<Variable>& list, std::size_t& end) {
    check_size(declaration);
    if (!variables_.add(declaration, list, end)) fail_twice(declaration);
  }

  void check_size(const Declaration& declaration) const {
    if (declaration.has_open_end)
      lexer_.fail_at(declaration.name, joined("variable ", declaration.name, " has no size"));
  }

  [[noreturn]] void fail_twice(const Declaration& declaration) const {
    lexer_.fail_at(declaration.name, joined("variable ", declaration.name, " is declared twice"));
  }

  void declare_shared(const Declaration& declaration) {
    check_size(declaration);
    if (!variables_.add_shared(declaration)) fail_twice(declaration);
  }

  /// ".b32 %r<77>;", ".pred p, q;"
  void registers() {
    const std::string_view word = lexer_.expect(Token::Kind::directive, "a type").text;
    const Type type = type_named(word.substr(1));
    if (type == Type::none) lexer_.fail(joined("type '", word, "' of a register is not known here"));
    do {
      const std::string_view name = lexer_.expect(Token::Kind::identifier, "the name of a register").text;
      if (lexer_.accept("<")) {
        scopes_.declare_registers(name, lexer_.expect_integer(), type);
        lexer_.expect(">");
      } else if (!scopes_.declare_register(name, type)) {
        lexer_.fail_at(name, joined("register ", name, " is declared twice"));
      }
    } while (lexer_.accept(","));
    lexer_.expect(";");
  }

  /// Hints for ptxas: "nounroll".
  void pragma() {
    lexer_.expect(".pragma");
    do {
      lexer_.expect(Token::Kind::string, "a string");
    } while (lexer_.accept(","));
    lexer_.expect(";");
  }

  void resolve_labels(std::vector<Operand>& operands) const {
    for (Operand& operand : operands) {
      resolve_labels(operand.parts);
      if (operand.kind != Operand::Kind::label) continue;
      const auto target = scopes_.label_named(operand.name, operand.target);
      if (!target) lexer_.fail_at(operand.name, joined("label ", operand.name, " is not declared"));
      operand.target = *target;
    }
  }

  Kernel& kernel_;
  Function* function_;
  Body body_;
  Lexer lexer_;
  Scopes scopes_{kernel_.registers};
  KernelVariables& variables_;
  OperandReader operands_{lexer_, scopes_, variables_};
  SourceLines lines_;
};

}  // namespace

Body read_kernel_body(std::string_view module, std::size_t begin, std::size_t end, Kernel& kernel,
                      KernelVariables& variables) {
  return BodyReader(module, begin, end, kernel, variables, nullptr).read_kernel();
}

Body read_function_body(std::string_view module, const FunctionText& text, Kernel& kernel, KernelVariables& variables,
                        Function& function) {
  return BodyReader(module, text.begin, text.end, kernel, variables, &function).read_function();
}

}  // namespace gradring::ptx
