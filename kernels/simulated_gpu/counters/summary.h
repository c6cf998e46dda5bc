// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/ptx/machine_code.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

InstructionClass class_of(const ptx::Instruction& instruction);

/// Lanes of warps that a multiprocessor completes in a cycle, of instructions of a class; 0: issuing them is the limit.
/// Where instructions of a class differ, that of the fastest.
///
/// Source    CUDA C++ Programming Guide 13.0, "Arithmetic instructions": results per clock cycle and multiprocessor for
///           compute capability 7.5 to 9.0. Loads and stores: what the L1 cache of the architecture papers serves in a
///           cycle, 64 bytes at 7.5 and 128 bytes later.
///           f16 to f32: the guide's rate of additions of f16, for that is what ptxas 13.0 makes of it (HADD2.F32).
unsigned lanes_per_cycle(InstructionClass instruction, const Card& card);

/// Multiplications and additions of one warp in mma, wmma.mma or wgmma.mma_async; 0 for other instructions.
std::uint64_t tensor_flops(const ptx::Instruction& instruction);

/// bar.sync and bar.red: of a block, not of a warp.
bool is_block_barrier(const ptx::Instruction& instruction);

/// A launch that was executed with ExecutionOptions::counted_multiprocessors of the card.
struct ExecutedLaunch {
  const ptx::Module& module;
  const ptx::Kernel& kernel;
  const std::optional<ptx::CompiledKernel>& code;
  const LaunchSpec& spec;
  const Counters& counters;
  const Card& card;
  bool lists = false;                     ///< LaunchCounts::listing is wanted
  std::span<const std::byte> cubin = {};  ///< with `code`
};

/// Sums, occupancy and bound of a launch. `name`: of the kernel, for people.
LaunchCounts summary_of(const ExecutedLaunch& launch, std::string name);

}  // namespace gradring::simulated_gpu
