// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "kernels/simulated_gpu/machine/launch.h"
#include "kernels/simulated_gpu/ptx/machine_code.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// Which pipe of a multiprocessor executes a machine instruction.
///
/// Source    names and pipes: Nsight Compute's "Pipelines"; opcodes: nvdisasm 13.5, of every kernel here.
Pipe pipe_of(std::uint16_t opcode);

/// Lanes of warps that a pipe completes in a cycle; 0: issuing is the limit.
///
/// Source    CUDA C++ Programming Guide 13.0, "Arithmetic instructions".
unsigned lanes_per_cycle(Pipe pipe, const Card& card);

/// How often warps execute the machine code of a kernel, of which only the PTX was executed: estimated.
///
/// A machine instruction was made for an instruction of PTX, which its line names. All instructions of a basic block are
/// executed equally often: as often as the PTX of the median one, for ptxas moves some into other blocks. Where ptxas
/// unrolled a loop, an instruction of PTX has several copies, in one block or more, which share its executions: as many
/// turns as there are go to the block with most copies, the rest to the next. Memory accesses, f32 and products on tensor
/// cores tell how many copies there are; blocks without these count once.
class MachineExecutions {
 public:
  /// `code`: of the same kernel.
  MachineExecutions(const ptx::Module& module, const ptx::Kernel& kernel, const ptx::CompiledKernel& code,
                    const Counters& counters);

  /// Without lines (nvcc -lineinfo) nothing is known.
  bool is_known() const { return is_known_; }

  /// Of warps, by pipe. `of_ptx`: executions of the instructions of PTX, by index.
  std::array<double, kPipes> by_pipe(std::span<const std::uint64_t> of_ptx) const;
  /// The same by machine instruction.
  std::vector<double> of_each(std::span<const std::uint64_t> of_ptx) const;
  /// The instruction of PTX that a machine instruction was made for; npos: unknown.
  std::size_t ptx_of(std::size_t instruction) const { return ptx_of_[instruction]; }
  static constexpr std::size_t npos = ~std::size_t{0};

 private:
  /// What stands for a basic block.
  struct Representative {
    std::size_t ptx = npos;
    double share = 1;  ///< of its executions
  };
  double executions(const ptx::MachineInstruction& instruction, std::span<const std::uint64_t> of_ptx) const;

  const ptx::CompiledKernel& code_;
  std::vector<std::size_t> ptx_of_;
  std::vector<Representative> blocks_;
  bool is_known_ = false;
};

}  // namespace gradring::simulated_gpu
