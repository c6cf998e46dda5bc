// SPDX-License-Identifier: Apache-2.0
// What is read lies in its bounds: registers, labels, variables, texts.
#include <cstdlib>
#include <string>

#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/module.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace gradring::ptx;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const Kernel& kernel, const Operand& operand) {
  if (operand.kind == Operand::Kind::reg) require(operand.reg < kernel.registers.size());
  if (operand.kind == Operand::Kind::label) require(operand.target <= kernel.code.size());
  if (operand.kind == Operand::Kind::address) require(!operand.parts.empty());
  for (const Operand& part : operand.parts) check(kernel, part);
}

void check(const Kernel& kernel) {
  for (const Instruction& instruction : kernel.code) {
    if (instruction.guard) require(kernel.registers.at(instruction.guard->reg) == Type::pred);
    require(!instruction.words.empty() && instruction.text.ends_with(';'));
    for (const Operand& operand : instruction.operands) check(kernel, operand);
  }
  for (const Variable& variable : kernel.shared) {
    require(variable.offset % variable.alignment == 0);
    require(variable.offset + variable.bytes <= kernel.static_shared_bytes);
  }
}

void read_kernel(const Module& module, std::string_view name) {
  try {
    check(*module.kernel(name));
  } catch (const PtxError&) {
    return;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Module module(std::string(reinterpret_cast<const char*>(data), size));
    for (const auto name : module.kernel_names()) read_kernel(module, name);
  } catch (const PtxError&) {
    return 0;
  }
  return 0;
}
