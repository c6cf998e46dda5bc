// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::ptx {

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
