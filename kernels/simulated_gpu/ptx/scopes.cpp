// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/scopes.h"

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

}  // namespace

Scopes::Scopes(std::vector<Type>& registers) : registers_(registers) {}

void Scopes::open() {
  scopes_.push_back({.parent = current_});
  current_ = scopes_.size() - 1;
}

void Scopes::close() {
  // What only this scope saw is not looked up again; labels are, from instructions above them.
  scopes_[current_].registers.clear();
  current_ = scopes_[current_].parent;
}

bool Scopes::declare_register(std::string_view name, Type type) {
  return scopes_[current_].registers.try_emplace(name, Register{.type = type}).second;
}

bool Scopes::declare_label(std::string_view name, std::size_t target) {
  return scopes_[current_].labels.try_emplace(name, target).second;
}

bool Scopes::declare_targets(std::string_view name, const std::vector<std::string_view>& labels) {
  return scopes_[current_].targets.try_emplace(name, labels).second;
}

void Scopes::declare_registers(std::string_view prefix, std::size_t count, Type type) {
  scopes_[current_].ranges.push_back({.prefix = prefix, .count = count, .type = type});
}

Scopes::Register* Scopes::find(Scope& scope, std::string_view name) {
  const auto known = scope.registers.find(name);
  if (known != scope.registers.end()) return &known->second;
  for (const Range& range : scope.ranges)
    if (is_in_range(name, range.prefix, range.count))
      return &scope.registers.try_emplace(name, Register{.type = range.type}).first->second;
  return nullptr;
}

std::optional<unsigned> Scopes::register_named(std::string_view name) {
  for (std::size_t scope = current_;; scope = scopes_[scope].parent) {
    if (Register* const found = find(scopes_[scope], name)) {
      if (!found->number) {
        found->number = static_cast<unsigned>(registers_.size());
        registers_.push_back(found->type);
      }
      return found->number;
    }
    if (scope == 0) return std::nullopt;
  }
}

std::optional<std::size_t> Scopes::label_named(std::string_view name, std::size_t scope) const {
  for (;; scope = scopes_[scope].parent) {
    const auto found = scopes_[scope].labels.find(name);
    if (found != scopes_[scope].labels.end()) return found->second;
    if (scope == 0) return std::nullopt;
  }
}

const std::vector<std::string_view>* Scopes::targets_named(std::string_view name) const {
  for (std::size_t scope = current_;; scope = scopes_[scope].parent) {
    const auto found = scopes_[scope].targets.find(name);
    if (found != scopes_[scope].targets.end()) return &found->second;
    if (scope == 0) return nullptr;
  }
}

}  // namespace gradring::ptx
