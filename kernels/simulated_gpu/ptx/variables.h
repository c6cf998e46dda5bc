// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernels/simulated_gpu/ptx/lexer.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::ptx {

/// ".align 16 .b8 tile[64][2]": what follows a state space.
struct Declaration : Variable {
  bool has_open_end = false;  ///< tile[]
};
/// `is_parameter`: also ".u64 .ptr .global .align 16 name", which tells of what a pointer points to.
Declaration read_declaration(Lexer& lexer, bool is_parameter = false);

/// What a module declares outside of its kernels.
struct ModuleVariables {
  std::unordered_map<std::string_view, Declaration> shared;  ///< dynamic shared memory has an open end
  std::vector<GlobalVariable> globals;
  std::unordered_set<std::string_view> names;  ///< of both
};

/// The variables that a kernel may name, and their layout in its memories.
class KernelVariables {
 public:
  KernelVariables(const ModuleVariables& module, Kernel& kernel) : module_(module), kernel_(kernel) {}

  /// Declarations in the kernel. False if the kernel has the name already.
  bool add_parameter(const Declaration& declaration);
  bool add_shared(const Declaration& declaration);
  bool add_local(const Declaration& declaration);
  /// Whether there is a variable of this name. A shared variable of the module becomes one of the kernel.
  bool use(std::string_view name);
  /// Places dynamic shared memory behind static shared memory.
  void finish();

 private:
  const ModuleVariables& module_;
  Kernel& kernel_;
  std::unordered_set<std::string_view> names_;
  std::vector<Variable> dynamic_shared_;
};

}  // namespace gradring::ptx
