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

/// The instructions of a kernel, with their basic blocks, without lines. What a call reaches and what returns from there is
/// the slow path of a division or root, and not followed, as that of a shuffle in a diverged warp; a call without return
/// is a long branch.
///
/// Source    NVIDIA does not document the encoding of BRA, EXIT, RET and CALL for 8.0 to 9.0; compared with what nvdisasm
///           13.5 prints of every kernel here.
/// `compute_capability`: of the code; branches of 9.0 and later have another encoding.
std::vector<MachineInstruction> machine_instructions(std::span<const std::byte> code, unsigned compute_capability);

/// From this address on, machine code is for this line.
struct LineRow {
  std::size_t sequence = 0;  ///< where the section holds the begin of the code, which a relocation fills in
  std::uint64_t address = 0;
  unsigned line = 0;  ///< 0 from the end of the code on
};

/// The rows of a section such as .debug_line, in its order.
///
/// Errors    PtxError if it is damaged, or of a version above 4.
/// Source    DWARF Debugging Information Format, Version 4, 2010, section 6.2. Opcodes that are NVIDIA's own are skipped.
std::vector<LineRow> read_line_program(std::span<const std::byte> section);

}  // namespace gradring::ptx
