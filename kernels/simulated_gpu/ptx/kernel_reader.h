// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernels/simulated_gpu/ptx/lexer.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::ptx {

/// What names of registers and labels mean at a position in a kernel: the innermost scope that declares a name decides.
class Scopes {
 public:
  /// `registers` grows by each register that is used; its index is the register's number.
  explicit Scopes(std::vector<Type>& registers) : registers_(registers) {}

  void open() {
    scopes_.push_back({.parent = current_});
    current_ = scopes_.size() - 1;
  }
  /// Its labels stay known. Not of the outermost scope.
  void close() {
    // What only this scope saw is not looked up again; labels are, from instructions above them.
    scopes_[current_].registers.clear();
    current_ = scopes_[current_].parent;
  }
  std::size_t current() const { return current_; }
  bool is_outermost() const { return current_ == 0; }

  /// These are false if the innermost scope has the name already.
  bool declare_register(std::string_view name, Type type) {
    return scopes_[current_].registers.try_emplace(name, Register{.type = type}).second;
  }
  bool declare_label(std::string_view name, std::size_t target) {
    return scopes_[current_].labels.try_emplace(name, target).second;
  }
  bool declare_targets(std::string_view name, const std::vector<std::string_view>& labels) {
    return scopes_[current_].targets.try_emplace(name, labels).second;
  }
  /// prefix0, prefix1, ...
  void declare_registers(std::string_view prefix, std::size_t count, Type type) {
    scopes_[current_].ranges.push_back({.prefix = prefix, .count = count, .type = type});
  }

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
  /// What find(scope) returns for the innermost scope, from this one outwards, for which it is not null.
  template <class Self, class Find>
  static auto find_outwards(Self& self, std::size_t scope, Find find);

  std::vector<Type>& registers_;
  std::vector<Scope> scopes_ = std::vector<Scope>(1);
  std::size_t current_ = 0;
};

/// ".align 16 .b8 tile[64][2]": what follows a state space.
struct Declaration : Variable {
  bool has_open_end = false;  ///< tile[]
};
/// `is_parameter`: also ".u64 .ptr .global .align 16 name", which tells of what a pointer points to.
Declaration read_declaration(Lexer& lexer, bool is_parameter = false);

/// What a module declares outside of its kernels.
struct ModuleVariables {
  std::unordered_map<std::string_view, Declaration> shared;  ///< dynamic shared memory has an open end
  std::unordered_set<std::string_view> names;                ///< also of global and constant memory
};

/// The variables that a kernel may name, and their layout in its memories.
class KernelVariables {
 public:
  KernelVariables(const ModuleVariables& module, Kernel& kernel) : module_(module), kernel_(kernel) {}

  /// Declares a parameter or variable of the kernel behind those of `list`, which end at `end`. False if the kernel has
  /// the name already.
  bool add(Variable variable, std::vector<Variable>& list, std::size_t& end);
  /// Whether there is a variable of this name. A shared variable of the module becomes one of the kernel.
  bool use(std::string_view name);
  /// Lays out dynamic shared memory behind static shared memory.
  void finish();

 private:
  const ModuleVariables& module_;
  Kernel& kernel_;
  std::unordered_set<std::string_view> names_;
  std::vector<Variable> dynamic_shared_;
};

/// Reads what follows an opcode. Names of registers and variables are resolved; an operand of kind label has its name,
/// and in `target` the scope in which the name is to be found, since labels may be declared below.
class OperandReader {
 public:
  OperandReader(Lexer& lexer, Scopes& scopes, KernelVariables& variables)
      : lexer_(lexer), scopes_(scopes), variables_(variables) {}

  /// Up to the semicolon, which stays. `words`: those of the opcode.
  std::vector<Operand> read(const std::vector<std::string_view>& words);
  /// What follows '@'.
  Instruction::Guard guard();

 private:
  Operand operand();
  Operand element();  ///< one that has no parts
  Operand vector();
  Operand address();
  Operand immediate();
  Operand named();
  unsigned predicate();
  Operand label(std::string_view name) const;
  Operand branch_target();
  std::int64_t offset();
  std::string_view special_register(std::string_view name);

  Lexer& lexer_;
  Scopes& scopes_;
  KernelVariables& variables_;
};

/// Reads a kernel, from its name at `begin` to the brace that ends it, before `end`.
///
/// Errors    PtxError
Kernel read_kernel(std::string_view module, std::size_t begin, std::size_t end, const ModuleVariables& variables);

}  // namespace gradring::ptx
