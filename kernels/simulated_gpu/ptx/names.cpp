// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/kernel_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace gradring::ptx {
namespace {

/// Whether `name` is prefix0, prefix1, ... below `count`.
bool is_in_range(std::string_view name, std::string_view prefix, std::size_t count) {
  if (!name.starts_with(prefix)) return false;
  const std::string_view digits = name.substr(prefix.size());
  if (digits.size() > 1 && digits.starts_with('0')) return false;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() && number < count;
}

// More than any memory of a GPU, and too few for sums of them to overflow.
constexpr std::size_t kMostBytes = std::size_t{1} << 44;

std::size_t read_alignment(Lexer& lexer) {
  const std::string_view number = lexer.peek().text;
  const std::uint64_t alignment = lexer.expect_integer();
  if (!std::has_single_bit(alignment) || alignment > kMostBytes)
    lexer.fail_at(number, joined("an alignment is ", alignment, ", not a power of two"));
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
      lexer.fail_at(made.name, joined("variable ", made.name, " is larger than ", kMostBytes, " bytes"));
    made.bytes *= extent;
    lexer.expect("]");
  }
}

std::size_t aligned(std::size_t offset, std::size_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

/// Behind what ends at `end`.
void lay_out(Variable& variable, std::size_t& end) {
  variable.offset = aligned(end, variable.alignment);
  end = variable.offset + variable.bytes;
}

}  // namespace

Scopes::Register* Scopes::find(Scope& scope, std::string_view name) {
  const auto known = scope.registers.find(name);
  if (known != scope.registers.end()) return &known->second;
  for (const Range& range : scope.ranges)
    if (is_in_range(name, range.prefix, range.count))
      return &scope.registers.try_emplace(name, Register{.type = range.type}).first->second;
  return nullptr;
}

template <class Self, class Find>
auto Scopes::find_outwards(Self& self, std::size_t scope, Find find) {
  for (;; scope = self.scopes_[scope].parent) {
    const auto found = find(self.scopes_[scope]);
    if (found || scope == 0) return found;
  }
}

std::optional<unsigned> Scopes::register_named(std::string_view name) {
  Register* const found = find_outwards(*this, current_, [&](Scope& scope) { return find(scope, name); });
  if (found == nullptr) return std::nullopt;
  if (!found->number) {
    found->number = static_cast<unsigned>(registers_.size());
    registers_.push_back(found->type);
  }
  return found->number;
}

std::optional<std::size_t> Scopes::parameter_named(std::string_view name) const {
  return find_outwards(*this, current_, [&](const Scope& in) {
    const auto found = in.parameters.find(name);
    return found == in.parameters.end() ? std::nullopt : std::optional(found->second);
  });
}

std::optional<std::size_t> Scopes::label_named(std::string_view name, std::size_t scope) const {
  return find_outwards(*this, scope, [&](const Scope& in) {
    const auto found = in.labels.find(name);
    return found == in.labels.end() ? std::nullopt : std::optional(found->second);
  });
}

const std::vector<std::string_view>* Scopes::targets_named(std::string_view name) const {
  return find_outwards(*this, current_, [&](const Scope& in) {
    const auto found = in.targets.find(name);
    return found == in.targets.end() ? nullptr : &found->second;
  });
}

Declaration read_declaration(Lexer& lexer, bool is_parameter) {
  Declaration made;
  const std::size_t alignment = lexer.accept(".align") ? read_alignment(lexer) : 0;
  const std::string_view type = lexer.peek().text;
  made.bytes = made.element_bytes = type.starts_with('.') ? bytes_of(type_named(type.substr(1))) : 0;
  if (made.bytes == 0) lexer.fail(joined("type '", type, "' of a variable is not known here"));
  lexer.next();
  made.alignment = alignment > 0 ? alignment : made.bytes;
  if (is_parameter && lexer.peek().is(".ptr")) skip_pointer_attributes(lexer);
  made.name = lexer.expect(Token::Kind::identifier, "the name of a variable").text;
  read_extents(lexer, made);
  return made;
}

bool KernelVariables::add(Variable variable, std::vector<Variable>& list, std::size_t& end) {
  lay_out(variable, end);
  list.push_back(variable);
  return names_of_body_.insert(variable.name).second;
}

bool KernelVariables::add_shared(const Variable& variable) {
  lay_out(kernel_.shared.emplace_back(variable), kernel_.static_shared_bytes);
  return names_.insert(variable.name).second && !names_of_body_.contains(variable.name);
}

std::size_t KernelVariables::add_call_parameter(Variable variable) {
  lay_out(variable, kernel_.call_parameter_bytes);
  kernel_.call_parameters.push_back(variable);
  return kernel_.call_parameters.size() - 1;
}

std::optional<std::size_t> KernelVariables::function_named(std::string_view name) {
  const auto text = module_.functions.find(name);
  if (text == module_.functions.end()) return std::nullopt;
  const auto known = std::ranges::find(kernel_.functions, name, &Function::name);
  if (known == kernel_.functions.end()) {
    kernel_.functions.push_back({.name = name, .address = address_of_function(text->second.number)});
    return kernel_.functions.size() - 1;
  }
  return static_cast<std::size_t>(known - kernel_.functions.begin());
}

bool KernelVariables::use(std::string_view name) {
  if (names_of_body_.contains(name) || names_.contains(name)) return true;
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
