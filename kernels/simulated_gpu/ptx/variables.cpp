// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/variables.h"

#include <algorithm>
#include <bit>

namespace gradring::ptx {
namespace {

// More than any memory of a GPU, and too few for sums of them to overflow.
constexpr std::size_t kMostBytes = std::size_t{1} << 44;

std::size_t read_alignment(Lexer& lexer) {
  const std::string_view number = lexer.peek().text;
  const std::uint64_t alignment = lexer.expect_integer();
  if (!std::has_single_bit(alignment) || alignment > kMostBytes)
    lexer.fail_at(number, "an alignment is " + std::to_string(alignment) + ", not a power of two");
  return alignment;
}

void skip_pointer_attributes(Lexer& lexer) {
  lexer.expect(".ptr");
  for (const std::string_view space : {".global", ".shared", ".local", ".const"})
    if (lexer.accept(space)) break;
  if (lexer.accept(".align")) read_alignment(lexer);
}

void read_extents(Lexer& lexer, Declaration& made) {
  while (lexer.accept("[")) {
    if (lexer.accept("]")) {
      made.has_open_end = true;
      made.bytes = 0;
      return;
    }
    const std::uint64_t extent = lexer.expect_integer();
    if (extent > kMostBytes / std::max<std::size_t>(made.bytes, 1))
      lexer.fail_at(made.name,
                    "variable " + std::string(made.name) + " is larger than " + std::to_string(kMostBytes) + " bytes");
    made.bytes *= extent;
    lexer.expect("]");
  }
}

std::size_t aligned(std::size_t offset, std::size_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

/// Places a variable behind those that end at `end`, which becomes its own end.
Variable place(Variable variable, std::size_t& end) {
  variable.offset = aligned(end, variable.alignment);
  end = variable.offset + variable.bytes;
  return variable;
}

}  // namespace

Declaration read_declaration(Lexer& lexer, bool is_parameter) {
  Declaration made;
  const std::size_t alignment = lexer.accept(".align") ? read_alignment(lexer) : 0;
  const std::string_view type = lexer.peek().text;
  made.bytes = type.starts_with('.') ? bytes_of(type_named(type.substr(1))) : 0;
  if (made.bytes == 0) lexer.fail("type '" + std::string(type) + "' of a variable is not known here");
  lexer.next();
  made.alignment = alignment > 0 ? alignment : made.bytes;
  if (is_parameter && lexer.peek().is(".ptr")) skip_pointer_attributes(lexer);
  made.name = lexer.expect(Token::Kind::identifier, "the name of a variable").text;
  read_extents(lexer, made);
  return made;
}

bool KernelVariables::add_parameter(const Declaration& declaration) {
  kernel_.parameters.push_back(place(declaration, kernel_.parameter_bytes));
  return names_.insert(declaration.name).second;
}

bool KernelVariables::add_shared(const Declaration& declaration) {
  kernel_.shared.push_back(place(declaration, kernel_.static_shared_bytes));
  return names_.insert(declaration.name).second;
}

bool KernelVariables::add_local(const Declaration& declaration) {
  kernel_.local.push_back(place(declaration, kernel_.local_bytes));
  return names_.insert(declaration.name).second;
}

bool KernelVariables::use(std::string_view name) {
  if (names_.contains(name)) return true;
  if (!module_.names.contains(name)) return false;
  if (const auto found = module_.shared.find(name); found != module_.shared.end()) {
    if (found->second.has_open_end) {
      names_.insert(name);
      kernel_.uses_dynamic_shared = true;
      dynamic_shared_.push_back(found->second);
    } else {
      add_shared(found->second);
    }
  }
  return true;
}

void KernelVariables::finish() {
  // CUDA gives all of them one address.
  std::size_t& end = kernel_.static_shared_bytes;
  for (const Variable& variable : dynamic_shared_) end = aligned(end, variable.alignment);
  for (Variable& variable : dynamic_shared_) {
    variable.offset = end;
    kernel_.shared.push_back(variable);
  }
}

}  // namespace gradring::ptx
