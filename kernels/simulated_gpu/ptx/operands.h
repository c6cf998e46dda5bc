// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "kernels/simulated_gpu/ptx/lexer.h"
#include "kernels/simulated_gpu/ptx/module.h"
#include "kernels/simulated_gpu/ptx/scopes.h"
#include "kernels/simulated_gpu/ptx/variables.h"

namespace gradring::ptx {

/// Reads what follows an opcode. Names of registers and variables are resolved; an operand of kind label has its name, and in
/// `target` the scope in which the name is to be found, since labels may be declared below.
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

}  // namespace gradring::ptx
