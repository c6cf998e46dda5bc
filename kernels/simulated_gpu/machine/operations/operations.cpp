// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/operations/operations.h"

#include <unordered_map>

namespace gradring::simulated_gpu {
namespace {

using Table = std::unordered_map<std::string_view, Translator>;

Table table_of(std::initializer_list<std::span<const Opcode>> groups) {
  Table table;
  for (const std::span<const Opcode> group : groups)
    for (const Opcode& opcode : group) table.emplace(opcode.name, opcode.translate);
  return table;
}

Translator find(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

Translator translator_of(const ptx::Instruction& instruction) {
  static const Table kOfFloats = table_of({GRADRING_COPY_TO_RUN(float_opcodes)(), float_division_opcodes()});
  static const Table kOfHalves = table_of({half_opcodes(), half_function_opcodes()});
  static const Table kOthers = table_of(
      {GRADRING_COPY_TO_RUN(integer_opcodes)(), GRADRING_COPY_TO_RUN(bit_opcodes)(), packed_integer_opcodes(),
       set_opcodes(), hint_opcodes(), carry_opcodes(), function_opcodes(), GRADRING_COPY_TO_RUN(comparison_opcodes)(),
       GRADRING_COPY_TO_RUN(conversion_opcodes)(), move_opcodes(), memory_opcodes(), control_opcodes(), call_opcodes(),
       warp_opcodes(), tensor_core_opcodes(), asynchronous_opcodes(), warpgroup_opcodes(), cluster_opcodes()});
  static const Table kWithCarry = table_of({carry_opcodes()});
  if (instruction.words.empty()) return nullptr;
  const std::string_view name = instruction.words.front();
  if (instruction.has("cc"))
    if (const Translator translator = find(kWithCarry, name)) return translator;
  if (instruction.has("f32") || instruction.has("f64"))
    if (const Translator translator = find(kOfFloats, name)) return translator;
  for (const std::string_view type : {"f16", "f16x2", "bf16", "bf16x2"})
    if (instruction.has(type))
      if (const Translator translator = find(kOfHalves, name)) return translator;
  return find(kOthers, name);
}

}  // namespace gradring::simulated_gpu
