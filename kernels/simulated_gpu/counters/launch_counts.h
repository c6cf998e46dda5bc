// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradring::simulated_gpu {

/// What an instruction is for, which decides what executes it, and how fast.
enum class InstructionClass : std::uint8_t {
  fp32,
  fp64,
  fp16,
  integer,
  comparison,
  bit_count,
  conversion,
  special,
  tensor,
  load_store,
  warp,
  synchronization,
  control,
  move,
  other,
};
inline constexpr std::size_t kInstructionClasses = 15;
/// As tables and files name them, in the order of InstructionClass.
inline constexpr std::array<std::string_view, kInstructionClasses> kInstructionClassNames = {
    "fp32",   "fp64",       "fp16", "integer",         "comparison", "bit_count", "conversion", "special",
    "tensor", "load_store", "warp", "synchronization", "control",    "move",      "other"};

/// What executes machine instructions in a multiprocessor, as Nsight Compute calls it: fma has fmaheavy and fmalite, of
/// which integer_fma needs the first.
enum class Pipe : std::uint8_t { alu, fma, integer_fma, half, fp64, tensor, xu, lsu, uniform, other };
inline constexpr std::size_t kPipes = 10;
/// In the order of Pipe.
inline constexpr std::array<std::string_view, kPipes> kPipeNames = {"alu",    "fma", "imad", "fp16",    "fp64",
                                                                    "tensor", "xu",  "lsu",  "uniform", "other"};

/// Requests of warps to global memory.
struct MemoryCounts {
  std::uint64_t requests = 0;
  std::uint64_t sectors = 0;        ///< of 32 bytes
  std::uint64_t least_sectors = 0;  ///< that the same bytes need at least
  std::uint64_t bytes = 0;          ///< that threads asked for

  double sectors_per_request() const { return requests > 0 ? ratio(sectors) : 0; }
  double least_sectors_per_request() const { return requests > 0 ? ratio(least_sectors) : 0; }

 private:
  double ratio(std::uint64_t count) const { return static_cast<double>(count) / static_cast<double>(requests); }
};

/// A line of the kernels' source.
struct LineCounts {
  std::string file;  ///< as in the repository: "kernels/ops/elementwise/1_flat.cu"
  unsigned line = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t machine_instructions = 0;  ///< estimated (MachineExecutions); 0 without machine code
  std::uint64_t sectors = 0;
  std::uint64_t excess_sectors = 0;  ///< beyond the least
  std::uint64_t wavefronts = 0;
  std::uint64_t excess_wavefronts = 0;  ///< beyond the least
};

/// An instruction of PTX, with what it became.
struct ListedInstruction {
  std::string text;
  std::string file;  ///< of LineCounts
  unsigned line = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t sectors = 0, least_sectors = 0;
  std::uint64_t wavefronts = 0, least_wavefronts = 0;
  std::vector<std::pair<std::size_t, double>> machine;  ///< offsets in the machine code, and how often it is executed
};

/// A kernel, instruction by instruction.
struct KernelListing {
  std::string mangled;  ///< its name in the machine code
  std::vector<ListedInstruction> instructions;
  std::string cubin;  ///< an ELF file with its machine code; empty without
};

/// What ptxas gave a kernel, and how much of a multiprocessor that leaves it.
struct LaunchResources {
  int registers = 0;                  ///< of a thread
  std::size_t stack_bytes = 0;        ///< of a thread: local memory
  std::size_t spill_store_bytes = 0;  ///< of a thread's code
  std::size_t spill_load_bytes = 0;   ///< the same
};

/// The least time that a card needs under assumptions that docs/counters.md states.
struct TimeBound {
  double issue_cycles = 0;  ///< of the multiprocessor that needs most
  std::string busiest;      ///< what needs these: "issue" of all instructions, a pipe, "shared memory" or "L1TEX"
  double issue_seconds = 0;
  double memory_seconds = 0;
  double tensor_seconds = 0;
  double l2_seconds = 0;

  double seconds() const { return std::max({issue_seconds, memory_seconds, tensor_seconds, l2_seconds}); }
  double microseconds() const { return 1e6 * seconds(); }
  /// "issue", "memory", "tensor" or "L2"
  const char* limit() const {
    return seconds() == issue_seconds    ? "issue"
           : seconds() == memory_seconds ? "memory"
           : seconds() == tensor_seconds ? "tensor"
                                         : "L2";
  }
};

/// One launch of a kernel, counted while it was executed. Instructions are those of PTX.
struct LaunchCounts {
  std::string kernel;  ///< with its template arguments: "relu_forward_flat_kernel<float>"
  std::array<unsigned, 3> grid{}, block{};
  std::size_t static_shared_bytes = 0;   ///< of a block
  std::size_t dynamic_shared_bytes = 0;  ///< of a block
  std::uint64_t blocks = 0;
  std::uint64_t warps = 0;

  std::array<std::uint64_t, kInstructionClasses> warp_instructions{};  ///< by InstructionClass
  std::uint64_t thread_instructions = 0;                               ///< of threads whose predicate held
  MemoryCounts loads, stores, atomics;                                 ///< loads: of cp.async, too
  std::uint64_t tensor_copy_bytes = 0;                                 ///< read by cp.async.bulk.tensor
  std::uint64_t distinct_read_bytes = 0;                               ///< of all sectors that were read, each once
  std::uint64_t distinct_written_bytes = 0;
  std::uint64_t shared_requests = 0;
  std::uint64_t wavefronts = 0;  ///< of shared memory
  std::uint64_t least_wavefronts = 0;
  std::uint64_t barriers = 0;  ///< of warps: bar.sync and bar.red
  std::uint64_t tensor_flops = 0;

  std::optional<LaunchResources> resources;                  ///< nothing without machine code for the card
  std::vector<std::pair<std::string, int>> blocks_by_limit;  ///< resident on a multiprocessor: "registers", 8
  std::string limiter;                                       ///< the first of the least
  int resident_warps = 0;                                    ///< that a multiprocessor holds of such blocks at once
  int grid_warps = 0;  ///< of these, there are so many on the multiprocessor that gets most blocks
  int most_warps = 0;  ///< that a multiprocessor can hold
  double waves = 0;    ///< the grid by the blocks that the card holds at once

  /// Of warps, estimated from the machine code; 0 without it.
  std::array<double, kPipes> machine_instructions{};

  TimeBound bound;
  std::optional<KernelListing> listing;  ///< if it was asked for
  std::vector<LineCounts> lines;         ///< of which there is something to say; in the order of the source

  std::uint64_t all_warp_instructions() const {
    return std::accumulate(warp_instructions.begin(), warp_instructions.end(), std::uint64_t{0});
  }
  double all_machine_instructions() const {
    return std::accumulate(machine_instructions.begin(), machine_instructions.end(), 0.0);
  }
};

/// A piece of work that was done while a simulated GPU counted.
struct CountedWork {
  enum class Kind : std::uint8_t { kernel, copy, clear, allocation, host_function };
  Kind kind = Kind::kernel;
  std::string name;  ///< of the kernel, or of the call or library that enqueued it
  int device = 0;
  std::size_t graph_launch = 0;          ///< counted from 1; 0: not a node of a graph
  std::vector<std::size_t> after;        ///< nodes of the same launch that this one waits for: indices of the list
  std::uint64_t bytes = 0;               ///< of a copy, or cleared
  double bound_seconds = 0;              ///< of a copy or clearing, by the card's bandwidths
  std::optional<LaunchCounts> launch{};  ///< of a kernel that was executed
};

}  // namespace gradring::simulated_gpu
