// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/ptx/machine_instructions.h"

namespace gradring::ptx {

/// What ptxas gave a kernel, as `ptxas -v` prints it.
struct CompiledKernel {
  int registers = 0;                    ///< of a thread
  std::size_t stack_bytes = 0;          ///< of a thread, those of called functions included: local memory
  std::size_t spill_store_bytes = 0;    ///< that a thread's instructions write where registers did not suffice
  std::size_t spill_load_bytes = 0;     ///< the same, read
  std::size_t static_shared_bytes = 0;  ///< of a block
  /// With the lines of their PTX, if the code was compiled with -lineinfo.
  std::vector<MachineInstruction> instructions;
};

/// The kernels of a cubin, by their mangled names.
///
/// Errors    PtxError if it is damaged, or not the machine code of a GPU.
/// Source    NVIDIA documents neither the sections (.nv.info, .nv.shared, .nv_debug_line_sass, which has the form of
///           .debug_line) nor the encoding of STL and LDL; tests compare with what ptxas 13.0 prints.
std::map<std::string, CompiledKernel> compiled_kernels(std::span<const std::byte> elf);

}  // namespace gradring::ptx
