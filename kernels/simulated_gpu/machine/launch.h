// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/memory/access_log.h"
#include "kernels/simulated_gpu/memory/global_memory.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

struct Program;
class FindingLog;

struct Extent {
  unsigned x = 1, y = 1, z = 1;

  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Extent&) const = default;
};

/// The position of a linear index, x first.
constexpr Extent extent_at(const Extent& whole, std::uint64_t index) {
  return {static_cast<unsigned>(index % whole.x), static_cast<unsigned>(index / whole.x % whole.y),
          static_cast<unsigned>(index / whole.x / whole.y)};
}

/// What a launch executed, by instruction of the kernel (the index is that of ptx::Kernel::code). Classes, source
/// lines and sums are made from it.
struct Counters {
  struct Instruction {
    std::uint64_t executions = 0;     ///< by warps
    std::uint64_t lanes = 0;          ///< threads in these
    std::uint64_t requests = 0;       ///< of global memory, by warps; none of a tensor copy
    std::uint64_t bytes = 0;          ///< of global memory, that threads and tensor copies asked for
    std::uint64_t sectors = 0;        ///< of 32 bytes, in these requests
    std::uint64_t least_sectors = 0;  ///< that the same bytes need at least
    std::uint64_t shared_requests = 0;
    std::uint64_t wavefronts = 0;  ///< of shared memory
    std::uint64_t least_wavefronts = 0;
  };
  std::uint64_t blocks = 0;
  std::uint64_t warps = 0;
  std::vector<Instruction> instructions;

  // Only with ExecutionOptions::counted_multiprocessors:
  /// Executions by multiprocessor and instruction, with the blocks shared out in turns.
  std::vector<std::vector<std::uint64_t>> by_multiprocessor;
  static constexpr unsigned kSectorBytes = 32;
  ByteSet read_sectors, written_sectors;  ///< of global memory, by their address / kSectorBytes

  /// One more range of global memory that was accessed.
  static void add_sectors(ByteSet& sectors, std::uint64_t address, std::size_t bytes) {
    sectors.add(address / kSectorBytes, (address + bytes - 1) / kSectorBytes + 1);
  }
  Counters& operator+=(const Counters& other);
};

/// A kernel, translated for execution: operands are slots in a warp's registers, and each instruction is a function.
/// Translated once, executed by any number of launches at the same time.
///
/// Errors    Fault that names each instruction that is not known here.
class Executable {
 public:
  Executable(const ptx::Module& module, const ptx::Kernel& kernel);
  ~Executable();
  const ptx::Kernel& kernel() const;
  CodeLocation location_of(std::size_t position) const;

 private:
  friend class Grid;
  std::unique_ptr<Program> program_;
};

struct LaunchSpec {
  Extent grid;
  Extent block;
  std::size_t dynamic_shared_bytes = 0;
  /// As the kernel's parameters lie in memory (ptx::Variable::offset), at least 128-byte aligned.
  std::span<const std::byte> parameters;
  /// Addresses of Module::variables(), by index; they are read when a kernel uses one.
  std::span<const std::uint64_t> variables{};
  int device = 0;
  /// Blocks that the GPU holds at once: others begin when one of these has ended. 0: all.
  std::uint64_t most_resident_blocks = 0;
  /// Blocks of a cluster, on each axis of the grid; of a kernel with .reqnctapercluster, that is taken.
  Extent cluster;
  /// All blocks are resident, and may synchronise by the workspace of cooperative groups.
  bool is_cooperative = false;
  /// It may begin before the work before it has ended; griddepcontrol.wait waits for that.
  bool begins_early = false;
  /// The address of this workspace: filled in by run().
  std::uint64_t grid_workspace = 0;
};

class RuntimeCall;
/// Functions that the runtime provides for kernels, by name (runtime_functions.h).
using RuntimeFunctions = std::map<std::string, std::function<void(RuntimeCall&)>, std::less<>>;

struct ExecutionOptions {
  std::uint64_t seed = 0;  ///< of the order in which the warps of a block, and blocks, are executed
  unsigned threads = 1;    ///< of the host; blocks are shared out over them
  bool checks_races = true;
  /// Instructions of a block's warps, after which it is taken to run for ever: a Fault. Several minutes.
  std::uint64_t most_instructions = std::uint64_t{1} << 33;
  /// Instructions of waiting warps, without a change of memory and without a barrier that completes, after which a
  /// launch is taken to wait for ever: a Fault. About two seconds.
  std::uint64_t most_idle_instructions = std::uint64_t{1} << 26;
  /// Memory for what finds races, of all host threads together. What finds no room is not compared.
  std::size_t most_race_bytes = std::size_t{1} << 30;
  /// Above 0: Counters also has what costs time to count, by multiprocessor: block i is on the i-th, modulo this.
  unsigned counted_multiprocessors = 0;
  const RuntimeFunctions* functions = nullptr;  ///< a kernel that calls another one is rejected
  /// Where findings go that a GPU would let pass, after which execution goes on; null: the first one is thrown.
  FindingLog* findings = nullptr;
};

/// Executes a grid to its end. Resident blocks make progress whatever others do: a block that waits for another one
/// is suspended, and resumed when the others have had their turns.
///
/// Errors    Fault, the first one that ends the launch (ExecutionOptions::findings); what other blocks did until then
///           stays in memory.
/// Numerics  as PTX ISA defines; approximate functions (ex2.approx, rcp.approx, ...) are rounded from double precision.
///
/// `accesses`: what the launch did with global memory goes there, if it is not null and races are checked.
Counters run(const Executable& executable, const LaunchSpec& launch, GlobalMemory& memory,
             const ExecutionOptions& options, AccessLog* accesses = nullptr);

}  // namespace gradring::simulated_gpu
