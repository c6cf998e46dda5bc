// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/kernel_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <utility>

namespace gradring::ptx {
namespace {

/// Special registers of PTX ISA 9.0, chapter 10, without those of profilers (%pm); of %envreg, those that cooperative
/// groups read.
constexpr std::string_view kSpecialRegisters =
    " %tid %ntid %laneid %warpid %nwarpid %ctaid %nctaid %smid %nsmid %gridid"
    " %is_explicit_cluster %clusterid %nclusterid %cluster_ctaid %cluster_nctaid %cluster_ctarank %cluster_nctarank"
    " %lanemask_eq %lanemask_le %lanemask_lt %lanemask_ge %lanemask_gt"
    " %clock %clock_hi %clock64 %globaltimer %globaltimer_lo %globaltimer_hi"
    " %reserved_smem_offset_begin %reserved_smem_offset_end %reserved_smem_offset_cap %reserved_smem_offset_0"
    " %reserved_smem_offset_1 %total_smem_size %aggr_smem_size %dynamic_smem_size %current_graph_exec %envreg0 %envreg1"
    " %envreg2 WARP_SZ ";

bool is_special_register(std::string_view name) {
  // With blanks, so that a part of a name is not found.
  return kSpecialRegisters.find(joined(' ', name, ' ')) != kSpecialRegisters.npos;
}

bool is_axis(std::string_view word) { return word == ".x" || word == ".y" || word == ".z" || word == ".w"; }

/// 0f3F800000 and 0d3FF0000000000000: the digits of IEEE 754.
bool parse_exact_float(std::string_view text, Operand& made) {
  const bool is_single = text.starts_with("0f") || text.starts_with("0F");
  const bool is_double = text.starts_with("0d") || text.starts_with("0D");
  if ((!is_single && !is_double) || text.size() != (is_single ? 10 : 18)) return false;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), made.bits, 16);
  made.is_float = true;
  made.is_double = is_double;
  return error == std::errc() && end == text.data() + text.size();
}

/// 1.5, 1e-3: a double.
bool parse_decimal_float(std::string_view text, Operand& made) {
  if (text.starts_with("0x") || text.find_first_of(".eE") == text.npos) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  made.bits = std::bit_cast<std::uint64_t>(value);
  made.is_float = made.is_double = true;
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Operand read_immediate(Lexer& lexer) {
  Operand made{.kind = Operand::Kind::immediate};
  const bool is_negative = lexer.accept("-");
  if (lexer.peek().is("(")) lexer.fail("expressions are not known here");
  const Token token = lexer.expect(Token::Kind::number, "an operand");
  if (parse_exact_float(token.text, made) || parse_decimal_float(token.text, made)) {
    if (is_negative) made.bits ^= made.is_double ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31;
  } else if (parse_integer(token.text, made.bits)) {
    if (is_negative) made.bits = 0 - made.bits;
  } else {
    lexer.fail_at(token.text, joined("number '", token.text, "' cannot be read"));
  }
  return made;
}

std::vector<Operand> OperandReader::read(const std::vector<std::string_view>& words) {
  std::vector<Operand> made;
  if (words[0] == "call") return call();
  if (lexer_.peek().is(";")) return made;
  const bool is_branch = words[0] == "bra" || words[0] == "brx";
  do {
    made.push_back(is_branch ? branch_target() : operand());
  } while (lexer_.accept(","));
  return made;
}

Instruction::Guard OperandReader::guard() {
  const bool negated = lexer_.accept("!");
  return {.reg = predicate(), .negated = negated};
}

unsigned OperandReader::predicate() {
  const Token name = lexer_.expect(Token::Kind::identifier, "a predicate");
  const auto found = scopes_.register_named(name.text);
  if (!found || scopes_.type_of(*found) != Type::pred)
    lexer_.fail_at(name.text, joined(name.text, " is not declared as a predicate"));
  return *found;
}

Operand OperandReader::operand() {
  if (lexer_.peek().is("{")) return vector();
  if (lexer_.peek().is("[")) return address();
  Operand made = element();
  if (lexer_.accept("|")) {
    Operand pair{.kind = Operand::Kind::pair};
    pair.parts = {std::move(made), element()};
    return pair;
  }
  return made;
}

Operand OperandReader::element() {
  if (lexer_.accept("_")) return {};
  if (lexer_.accept("!")) {
    return {.kind = Operand::Kind::reg, .reg = predicate(), .negated = true};
  }
  if (lexer_.peek().kind == Token::Kind::identifier) return named();
  return read_immediate(lexer_);
}

Operand OperandReader::vector() {
  Operand made{.kind = Operand::Kind::vector};
  lexer_.expect("{");
  do {
    made.parts.push_back(element());
  } while (lexer_.accept(","));
  lexer_.expect("}");
  return made;
}

Operand OperandReader::address() {
  Operand made{.kind = Operand::Kind::address};
  lexer_.expect("[");
  made.parts.push_back(element());
  // Of a symbol, the offset is the address's as well.
  made.offset = std::exchange(made.parts[0].offset, 0) + offset();
  while (lexer_.accept(",")) {
    Operand coordinates = lexer_.peek().is("{") ? vector() : element();
    if (coordinates.kind == Operand::Kind::vector)
      std::ranges::move(coordinates.parts, std::back_inserter(made.parts));
    else
      made.parts.push_back(std::move(coordinates));
  }
  lexer_.expect("]");
  return made;
}

Operand OperandReader::named() {
  const std::string_view name = lexer_.expect(Token::Kind::identifier, "a name").text;
  if (const auto number = scopes_.register_named(name)) return {.kind = Operand::Kind::reg, .reg = *number};
  if (is_special_register(name)) return {.kind = Operand::Kind::special, .name = special_register(name)};
  if (const auto parameter = scopes_.parameter_named(name))
    return {.kind = Operand::Kind::parameter, .name = name, .offset = offset(), .target = *parameter};
  if (!variables_.use(name)) {
    if (const auto function = variables_.function_named(name))
      return {.kind = Operand::Kind::function, .name = name, .target = *function};
    lexer_.fail_at(name, joined((name.starts_with('%') ? "register " : "name "), name, " is not declared"));
  }
  return {.kind = Operand::Kind::symbol, .name = name, .offset = offset()};
}

std::string_view OperandReader::special_register(std::string_view name) {
  if (!is_axis(lexer_.peek().text)) return name;
  const std::string_view axis = lexer_.next().text;
  return {name.data(), static_cast<std::size_t>(axis.data() + axis.size() - name.data())};
}

Operand OperandReader::branch_target() {
  if (lexer_.peek().kind != Token::Kind::identifier) return operand();
  const Token name = lexer_.peek();
  if (scopes_.register_named(name.text)) return operand();  // of brx.idx
  lexer_.next();
  const auto* const targets = scopes_.targets_named(name.text);
  if (!targets) return label(name.text);
  Operand made{.kind = Operand::Kind::vector};
  for (const std::string_view target : *targets) made.parts.push_back(label(target));
  return made;
}

/// "(results), function, (parameters), prototype" as results, target and parameters; each list and the prototype may be
/// missing.
std::vector<Operand> OperandReader::call() {
  Operand results{.kind = Operand::Kind::vector};
  if (lexer_.peek().is("(")) {
    results = call_list();
    lexer_.expect(",");
  }
  Operand target = call_target();
  Operand parameters{.kind = Operand::Kind::vector};
  if (lexer_.accept(",")) {
    if (lexer_.peek().is("(")) parameters = call_list();
    // The name of a prototype or of a list of targets, which tell nothing that the functions do not tell.
    while (lexer_.accept(",") || lexer_.peek().kind == Token::Kind::identifier)
      lexer_.expect(Token::Kind::identifier, "a prototype");
  }
  std::vector<Operand> made;
  made.push_back(std::move(results));
  made.push_back(std::move(target));
  made.push_back(std::move(parameters));
  return made;
}

Operand OperandReader::call_list() {
  Operand made{.kind = Operand::Kind::vector};
  lexer_.expect("(");
  if (lexer_.accept(")")) return made;
  do {
    made.parts.push_back(element());
  } while (lexer_.accept(","));
  lexer_.expect(")");
  return made;
}

Operand OperandReader::call_target() {
  Operand target = named();
  if (target.kind != Operand::Kind::function && target.kind != Operand::Kind::reg)
    lexer_.fail_at(target.name, joined(target.name, " is not a function"));
  return target;
}

Operand OperandReader::label(std::string_view name) const {
  return {.kind = Operand::Kind::label, .name = name, .target = scopes_.current()};
}

std::int64_t OperandReader::offset() {
  std::uint64_t sum = 0;
  while (lexer_.peek().is("+") || lexer_.peek().is("-")) {
    bool is_negative = lexer_.next().is("-");
    if (lexer_.accept("-")) is_negative = !is_negative;  // [%rd1+-8]
    const std::uint64_t term = lexer_.expect_integer();
    sum += is_negative ? 0 - term : term;
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace gradring::ptx
