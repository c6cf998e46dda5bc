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
    scopes_[current_].parameters.clear();
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
  /// A .param of a function or of a call, by its index of Kernel::call_parameters.
  bool declare_parameter(std::string_view name, std::size_t index) {
    return scopes_[current_].parameters.try_emplace(name, index).second;
  }
  std::optional<std::size_t> parameter_named(std::string_view name) const;
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
    std::unordered_map<std::string_view, std::size_t> parameters;
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
  bool has_open_end = false;      ///< tile[]
  std::size_t element_bytes = 0;  ///< of its type
};
/// `is_parameter`: also ".u64 .ptr .global .align 16 name", which tells of what a pointer points to.
Declaration read_declaration(Lexer& lexer, bool is_parameter = false);

/// The text of a device function, from what follows .func to its end.
struct FunctionText {
  std::size_t begin = 0, end = 0;
  bool is_defined = false;  ///< it has a body
  std::size_t number = 0;   ///< in the order of the module
};
/// ".align 4 .u32 counter = 7;": what follows .global or .const, with the semicolon.
ModuleVariable read_module_variable(Lexer& lexer);
/// A number: 12, -3, 0f3F800000, 1.5.
Operand read_immediate(Lexer& lexer);

/// What a module declares outside of its kernels.
struct ModuleVariables {
  std::unordered_map<std::string_view, Declaration> shared;  ///< dynamic shared memory has an open end
  std::unordered_set<std::string_view> names;                ///< also of global and constant memory
  std::unordered_map<std::string_view, FunctionText> functions;
  std::vector<std::string_view> initial_functions;  ///< names in initial values of variables
};

/// The variables and functions that a kernel and its functions may name, and the layout of variables in memory.
class KernelVariables {
 public:
  KernelVariables(const ModuleVariables& module, Kernel& kernel) : module_(module), kernel_(kernel) {}

  /// Forgets the names of local variables and parameters: another body follows.
  void begin_body() { names_of_body_.clear(); }
  /// Declares a parameter or local variable of a body behind those of `list`, which end at `end`. False if the body has
  /// the name already.
  bool add(Variable variable, std::vector<Variable>& list, std::size_t& end);
  /// The same for static shared memory, which all bodies of the kernel name.
  bool add_shared(const Variable& variable);
  /// Another parameter of functions, and its index.
  std::size_t add_call_parameter(Variable variable);
  /// Whether there is a variable of this name. A shared variable of the module becomes one of the kernel.
  bool use(std::string_view name);
  /// The index of a function of the module in Kernel::functions; the kernel may call it from now on.
  std::optional<std::size_t> function_named(std::string_view name);
  /// Lays out dynamic shared memory behind static shared memory.
  void finish();

 private:
  const ModuleVariables& module_;
  Kernel& kernel_;
  std::unordered_set<std::string_view> names_of_body_;
  std::unordered_set<std::string_view> names_;  ///< of shared variables
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
  Operand named();
  unsigned predicate();
  Operand label(std::string_view name) const;
  Operand branch_target();
  std::vector<Operand> call();
  Operand call_list();
  Operand call_target();
  std::int64_t offset();
  std::string_view special_register(std::string_view name);

  Lexer& lexer_;
  Scopes& scopes_;
  KernelVariables& variables_;
};

/// The code of a kernel or function, whose labels count from its own begin.
struct Body {
  std::vector<Instruction> code;
  std::vector<std::size_t> callees;  ///< indexes of Kernel::functions
  bool calls_indirectly = false;
};
/// Reads a kernel's head and body, from its name at `begin` to the brace that ends it, before `end`.
///
/// Errors    PtxError
Body read_kernel_body(std::string_view module, std::size_t begin, std::size_t end, Kernel& kernel,
                      KernelVariables& variables);
/// The same for a function, from its results on. One that is only declared has no code.
Body read_function_body(std::string_view module, const FunctionText& text, Kernel& kernel, KernelVariables& variables,
                        Function& function);

/// Reads a kernel as above, and the functions that it calls.
///
/// Errors    PtxError
Kernel read_kernel(std::string_view module, std::size_t begin, std::size_t end, const ModuleVariables& variables);

}  // namespace gradring::ptx
