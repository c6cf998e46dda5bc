// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace gradring::ptx {

/// An instruction of a kernel's machine code, which takes 16 bytes.
struct MachineInstruction {
  /// Of the instructions behind a call, of the slow path of an operation, and of the padding at the end.
  static constexpr unsigned kNoBlock = std::numeric_limits<unsigned>::max();
  std::uint16_t opcode = 0;   ///< 9 bits, without those that say where operands are
  unsigned ptx_line = 0;      ///< of the PTX that it was made for; 0: unknown
  unsigned block = kNoBlock;  ///< its basic block, in the order of the code: all of one are executed equally often
};

inline constexpr std::size_t kMachineInstructionBytes = 16;

/// The instructions of a kernel, with their basic blocks, without lines. A call returns to what follows it; the function
/// that it calls is the slow path of a division or root, or of a shuffle in a diverged warp, and not followed.
///
/// Source    NVIDIA does not document the encoding of BRA, EXIT, RET and CALL for 8.0 to 9.0; compared with what nvdisasm
///           13.5 prints of every kernel here.
std::vector<MachineInstruction> machine_instructions(std::span<const std::byte> code);

}  // namespace gradring::ptx
