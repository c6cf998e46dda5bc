// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/simulated_gpu/counters/occupancy.h"
#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

std::array<unsigned, 3> extents(const Extent& extent) { return {extent.x, extent.y, extent.z}; }

void add(MemoryCounts& sum, const Counters::Instruction& counted) {
  sum.requests += counted.requests;
  sum.sectors += counted.sectors;
  sum.least_sectors += counted.least_sectors;
  sum.bytes += counted.bytes;
}

/// Global memory, by what the instruction does there.
void add_global(LaunchCounts& sums, const ptx::Instruction& instruction, const Counters::Instruction& counted) {
  const std::string_view opcode = instruction.words.front();
  if (instruction.has("tensor")) {
    sums.tensor_copy_bytes += counted.bytes;
  } else if (opcode == "atom" || opcode == "red") {
    add(sums.atomics, counted);
  } else if (opcode == "st" || instruction.has("store")) {
    add(sums.stores, counted);
  } else {
    add(sums.loads, counted);
  }
}

/// What is known of an instruction before it is executed.
struct Kind {
  InstructionClass own = InstructionClass::other;
  std::uint64_t tensor_flops = 0;  ///< of a warp
};

std::vector<Kind> kinds_of(const ptx::Kernel& kernel) {
  std::vector<Kind> kinds;
  for (const ptx::Instruction& instruction : kernel.code)
    kinds.push_back({class_of(instruction), tensor_flops(instruction)});
  return kinds;
}

/// The line that a person wants to see: calls of simt.h and of CUDA's own headers count for the line that has them.
ptx::Source line_of(const ptx::Module& module, const ptx::Instruction& instruction) {
  const std::string file = path_in_repository(module.files()[instruction.source.file]);
  const bool is_of_kernels = file.starts_with("kernels/") && !file.starts_with("kernels/simt/");
  return is_of_kernels ? instruction.source : instruction.called_from;
}

void add_instructions(LaunchCounts& sums, const ExecutedLaunch& launch, const std::vector<Kind>& kinds) {
  std::map<std::pair<unsigned, unsigned>, LineCounts> lines;  // by file and line
  for (std::size_t i = 0; i < launch.kernel.code.size(); ++i) {
    const ptx::Instruction& instruction = launch.kernel.code[i];
    const Counters::Instruction& counted = launch.counters.instructions[i];
    if (counted.executions == 0) continue;
    sums.warp_instructions[static_cast<std::size_t>(kinds[i].own)] += counted.executions;
    sums.thread_instructions += counted.lanes;
    sums.tensor_flops += kinds[i].tensor_flops * counted.executions;
    if (is_block_barrier(instruction)) sums.barriers += counted.executions;
    add_global(sums, instruction, counted);
    sums.shared_requests += counted.shared_requests;
    sums.wavefronts += counted.wavefronts;
    sums.least_wavefronts += counted.least_wavefronts;
    if (instruction.source.line == 0) continue;
    const ptx::Source source = line_of(launch.module, instruction);
    LineCounts& line = lines[{source.file, source.line}];
    line.warp_instructions += counted.executions;
    line.excess_sectors += counted.sectors - counted.least_sectors;
    line.excess_wavefronts += counted.wavefronts - counted.least_wavefronts;
  }
  for (auto& [location, line] : lines) {
    line.file = path_in_repository(launch.module.files()[location.first]);
    line.line = location.second;
    sums.lines.push_back(std::move(line));
  }
}

void add_resources(LaunchCounts& sums, const ExecutedLaunch& launch) {
  if (launch.code)
    sums.resources = {.registers = launch.code->registers,
                      .stack_bytes = launch.code->stack_bytes,
                      .spill_store_bytes = launch.code->spill_store_bytes,
                      .spill_load_bytes = launch.code->spill_load_bytes};
  const auto threads = static_cast<unsigned>(launch.spec.block.count());
  const Occupancy occupancy =
      occupancy_of(launch.card, {.threads = threads,
                                 .registers = launch.code ? launch.code->registers : 0,
                                 .shared_bytes = sums.static_shared_bytes + sums.dynamic_shared_bytes});
  sums.blocks_by_limit = {{"warps", occupancy.by_warps},
                          {"registers", occupancy.by_registers},
                          {"shared memory", occupancy.by_shared_memory},
                          {"blocks", occupancy.by_blocks}};
  sums.limiter = occupancy.limiter();
  const int warps = static_cast<int>((threads + kWarpThreads - 1) / kWarpThreads);
  sums.resident_warps = occupancy.blocks() * warps;
  const std::uint64_t multiprocessors = static_cast<std::uint64_t>(launch.card.multiprocessors);
  const std::uint64_t most_blocks = (sums.blocks + multiprocessors - 1) / multiprocessors;
  sums.grid_warps =
      static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(occupancy.blocks()), most_blocks)) * warps;
  sums.most_warps = launch.card.threads_per_multiprocessor / kWarpThreads;
  if (occupancy.blocks() > 0)
    sums.waves = static_cast<double>(sums.blocks) / occupancy.blocks() / launch.card.multiprocessors;
}

/// What one multiprocessor executes.
struct Load {
  double issued = 0;                              ///< instructions of warps, without moves, which ptxas mostly removes
  std::array<double, kInstructionClasses> own{};  ///< instructions of warps
  double wavefronts = 0;
  double tensor_flops = 0;
};

Load load_of(const std::vector<std::uint64_t>& executions, const Counters& counters, const std::vector<Kind>& kinds) {
  Load load;
  for (std::size_t i = 0; i < std::min(executions.size(), kinds.size()); ++i) {
    if (executions[i] == 0) continue;
    const auto count = static_cast<double>(executions[i]);
    const Counters::Instruction& all = counters.instructions[i];
    load.own[static_cast<std::size_t>(kinds[i].own)] += count;
    if (kinds[i].own != InstructionClass::move) load.issued += count;
    load.wavefronts += count / static_cast<double>(all.executions) * static_cast<double>(all.wavefronts);
    load.tensor_flops += count * static_cast<double>(kinds[i].tensor_flops);
  }
  return load;
}

/// Raises the bound to what this multiprocessor needs.
void raise(TimeBound& bound, const Load& load, const Card& card) {
  const auto take = [&bound](double cycles, std::string_view what) {
    if (cycles <= bound.issue_cycles) return;
    bound.issue_cycles = cycles;
    bound.busiest = what;
  };
  take(load.issued / kSchedulers, "issue");
  for (std::size_t i = 0; i < kInstructionClasses; ++i)
    if (const unsigned lanes = lanes_per_cycle(static_cast<InstructionClass>(i), card); lanes > 0)
      take(load.own[i] * kWarpThreads / lanes, kInstructionClassNames[i]);
  take(load.wavefronts, "shared memory");
  bound.tensor_seconds =
      std::max(bound.tensor_seconds, load.tensor_flops / card.tensor_flops_per_cycle / card.clock_hertz);
}

TimeBound bound_of(const LaunchCounts& sums, const ExecutedLaunch& launch, const std::vector<Kind>& kinds) {
  TimeBound bound;
  for (const std::vector<std::uint64_t>& executions : launch.counters.by_multiprocessor)
    raise(bound, load_of(executions, launch.counters, kinds), launch.card);
  bound.issue_seconds = bound.issue_cycles / launch.card.clock_hertz;
  bound.memory_seconds =
      static_cast<double>(sums.distinct_read_bytes + sums.distinct_written_bytes) / launch.card.bytes_per_second;
  return bound;
}

}  // namespace

LaunchCounts summary_of(const ExecutedLaunch& launch, std::string name) {
  LaunchCounts sums;
  sums.kernel = std::move(name);
  sums.grid = extents(launch.spec.grid);
  sums.block = extents(launch.spec.block);
  sums.static_shared_bytes = launch.kernel.static_shared_bytes;
  sums.dynamic_shared_bytes = launch.spec.dynamic_shared_bytes;
  sums.blocks = launch.counters.blocks;
  sums.warps = launch.counters.warps;
  sums.distinct_read_bytes = launch.counters.read_sectors.size() * Counters::kSectorBytes;
  sums.distinct_written_bytes = launch.counters.written_sectors.size() * Counters::kSectorBytes;
  const std::vector<Kind> kinds = kinds_of(launch.kernel);
  add_instructions(sums, launch, kinds);
  add_resources(sums, launch);
  sums.bound = bound_of(sums, launch, kinds);
  return sums;
}

}  // namespace gradring::simulated_gpu
