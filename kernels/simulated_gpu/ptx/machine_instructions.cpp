// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/machine_instructions.h"

#include <cstring>
#include <optional>

namespace gradring::ptx {
namespace {

/// Opcodes that end a basic block.
enum Opcode : std::uint16_t {
  kSync = 0x141,
  kCall = 0x144,
  kBranch = 0x147,
  kIndirect = 0x149,
  kExit = 0x14d,
  kReturn = 0x150
};

struct Words {
  std::uint64_t low = 0, high = 0;

  std::uint16_t opcode() const { return low & 0x1ff; }
  /// Some lanes may go on behind it: it has a predicate, or a branch has a second one or needs divergent lanes.
  bool is_conditional() const {
    return (low >> 12 & 0xf) != 7 || (opcode() == kBranch && (high >> 23 & 0xf) != 7) || is_for_divergent_lanes();
  }
  /// BRA.DIV, whose target does for lanes that are apart what the instructions behind it do for all.
  bool is_for_divergent_lanes() const { return opcode() == kBranch && (high >> 27 & 1) != 0; }
  /// Bytes from the next instruction on.
  std::int64_t branch_offset(unsigned compute_capability) const {
    const std::int64_t upper = static_cast<std::int32_t>(low >> 32);
    return compute_capability < 90 ? upper : upper * 256 + static_cast<std::int64_t>(low >> 16 & 0xff) * 4;
  }
};

std::vector<Words> words_of(std::span<const std::byte> code) {
  std::vector<Words> all(code.size() / kMachineInstructionBytes);
  std::memcpy(all.data(), code.data(), all.size() * sizeof(Words));
  return all;
}

/// Where a branch of the instruction at `position` goes to; nothing for other instructions, and for what is not followed.
std::optional<std::size_t> target_of(const std::vector<Words>& code, std::size_t position, unsigned capability) {
  const Words& words = code[position];
  const bool jumps = words.opcode() == kBranch || words.opcode() == kCall;
  if (!jumps || words.is_for_divergent_lanes()) return std::nullopt;
  const std::int64_t target = static_cast<std::int64_t>(position) + 1 + words.branch_offset(capability) / 16;
  const bool is_inside = target >= 0 && target < static_cast<std::int64_t>(code.size());
  return is_inside ? std::optional(static_cast<std::size_t>(target)) : std::nullopt;
}

bool ends_block(std::uint16_t opcode) {
  return opcode == kSync || opcode == kCall || opcode == kBranch || opcode == kIndirect || opcode == kExit ||
         opcode == kReturn;
}

/// Lanes may go on with the next instruction, at once or later.
bool falls_through(const Words& words) {
  const std::uint16_t opcode = words.opcode();
  const bool leaves = opcode == kBranch || opcode == kIndirect || opcode == kExit || opcode == kReturn;
  return !leaves || words.is_conditional();
}

/// What can be reached from `begin`, without calls; with `long_branches` also by calls of what does not return.
std::vector<bool> reachable_from(const std::vector<Words>& code, std::size_t begin, unsigned capability,
                                 bool long_branches) {
  std::vector<bool> reached(code.size());
  std::vector<std::size_t> open = {begin}, calls;
  while (!open.empty() || !calls.empty()) {
    if (open.empty()) {
      const std::size_t callee = calls.back();
      calls.pop_back();
      if (reached[callee]) continue;
      const std::vector<bool> of_callee = reachable_from(code, callee, capability, false);
      bool returns = false;
      for (std::size_t i = 0; i < code.size(); ++i) returns |= of_callee[i] && code[i].opcode() == kReturn;
      if (returns) continue;
      open.push_back(callee);
    }
    std::size_t at = open.back();
    open.pop_back();
    for (; at < code.size() && !reached[at]; ++at) {
      reached[at] = true;
      const bool is_call = code[at].opcode() == kCall;
      if (const auto target = target_of(code, at, capability); target && (!is_call || long_branches))
        (is_call ? calls : open).push_back(*target);
      if (!falls_through(code[at])) break;
    }
  }
  return reached;
}

/// All, if the code branches to addresses that it computes.
std::vector<bool> reachable(const std::vector<Words>& code, unsigned capability) {
  for (const Words& words : code)
    if (words.opcode() == kIndirect) return std::vector<bool>(code.size(), true);
  return code.empty() ? std::vector<bool>() : reachable_from(code, 0, capability, true);
}

}  // namespace

std::vector<MachineInstruction> machine_instructions(std::span<const std::byte> bytes, unsigned capability) {
  const std::vector<Words> code = words_of(bytes);
  std::vector<bool> begins(code.size() + 1);
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (const auto target = target_of(code, i, capability)) begins[*target] = true;
    if (ends_block(code[i].opcode())) begins[i + 1] = true;
  }
  const std::vector<bool> reached = reachable(code, capability);
  std::vector<MachineInstruction> instructions(code.size());
  unsigned block = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    block += i > 0 && begins[i] ? 1 : 0;
    instructions[i].opcode = code[i].opcode();
    if (reached[i]) instructions[i].block = block;
  }
  return instructions;
}

}  // namespace gradring::ptx
