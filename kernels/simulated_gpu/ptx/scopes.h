// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::ptx {

/// What names of registers and labels mean at a place of a kernel: the innermost scope that declares a name decides.
class Scopes {
 public:
  /// `registers` grows by each register that is used; its index is the register's number.
  explicit Scopes(std::vector<Type>& registers);

  void open();
  /// Its labels stay known. Not of the outermost scope.
  void close();
  std::size_t current() const { return current_; }
  bool is_outermost() const { return current_ == 0; }

  /// These are false if the innermost scope has the name already.
  bool declare_register(std::string_view name, Type type);
  bool declare_label(std::string_view name, std::size_t target);
  bool declare_targets(std::string_view name, const std::vector<std::string_view>& labels);
  /// prefix0, prefix1, ...
  void declare_registers(std::string_view prefix, std::size_t count, Type type);

  std::optional<unsigned> register_named(std::string_view name);
  Type type_of(unsigned number) const { return registers_[number]; }
  std::optional<std::size_t> label_named(std::string_view name, std::size_t scope) const;
  /// The labels of a .branchtargets; null for an unknown name.
  const std::vector<std::string_view>* targets_named(std::string_view name) const;

 private:
  struct Register {
    Type type = Type::none;
    std::optional<unsigned> number;  ///< once it is used
  };
  struct Range {
    std::string_view prefix;
    std::size_t count = 0;
    Type type = Type::none;
  };
  struct Scope {
    std::size_t parent = 0;
    std::unordered_map<std::string_view, Register> registers;
    std::vector<Range> ranges;
    std::unordered_map<std::string_view, std::size_t> labels;
    std::unordered_map<std::string_view, std::vector<std::string_view>> targets;
  };

  static Register* find(Scope& scope, std::string_view name);

  std::vector<Type>& registers_;
  std::vector<Scope> scopes_ = std::vector<Scope>(1);
  std::size_t current_ = 0;
};

}  // namespace gradring::ptx
