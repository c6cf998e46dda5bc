// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/summary.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "kernels/simulated_gpu/counters/machine_executions.h"
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

/// Between L2 and all L1 caches.
///
/// Source    NVIDIA A100 Tensor Core GPU Architecture, 2020: 5120 bytes a cycle. NVIDIA states none for other cards here:
///           64 for each multiprocessor, which its L1 takes.
double l2_bytes_per_cycle(const Card& card) {
  constexpr double kOfA100 = 5120, kOfMultiprocessor = 64;
  return card.compute_capability() == 80 ? kOfA100 : kOfMultiprocessor * card.multiprocessors;
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

/// Executions of the instructions of PTX.
std::vector<std::uint64_t> executions_of(const Counters& counters) {
  std::vector<std::uint64_t> all;
  for (const Counters::Instruction& instruction : counters.instructions) all.push_back(instruction.executions);
  return all;
}

/// The machine code of a launch; nothing without its lines.
std::optional<MachineExecutions> machine_of(const ExecutedLaunch& launch) {
  if (!launch.code) return std::nullopt;
  std::optional<MachineExecutions> machine(std::in_place, launch.module, launch.kernel, *launch.code, launch.counters);
  return machine->is_known() ? std::move(machine) : std::nullopt;
}

/// Machine instructions by the PTX that they were made for: offsets and executions.
using MachineByPtx = std::map<std::size_t, std::vector<std::pair<std::size_t, double>>>;

MachineByPtx machine_by_ptx(const std::optional<MachineExecutions>& machine, const Counters& counters) {
  MachineByPtx all;
  if (!machine) return all;
  const std::vector<double> executions = machine->of_each(executions_of(counters));
  for (std::size_t i = 0; i < executions.size(); ++i)
    if (executions[i] > 0 && machine->ptx_of(i) != MachineExecutions::npos)
      all[machine->ptx_of(i)].emplace_back(i * ptx::kMachineInstructionBytes, executions[i]);
  return all;
}

using Lines = std::map<std::pair<unsigned, unsigned>, LineCounts>;  // by file and line

/// Those of PTX that were not executed have machine code, too: what ptxas makes of a branch has no branch.
void add_machine_instructions(Lines& lines, const ExecutedLaunch& launch, const MachineByPtx& machine) {
  for (const auto& [index, made] : machine) {
    const ptx::Instruction& instruction = launch.kernel.code[index];
    if (instruction.source.line == 0) continue;
    const ptx::Source source = line_of(launch.module, instruction);
    double sum = 0;
    for (const auto& [offset, executions] : made) sum += executions;
    lines[{source.file, source.line}].machine_instructions += static_cast<std::uint64_t>(sum);
  }
}

/// Every instruction, with its machine code.
KernelListing listing_of(const ExecutedLaunch& launch, const MachineByPtx& machine) {
  KernelListing listing{.mangled = std::string(launch.kernel.name)};
  for (std::size_t i = 0; i < launch.kernel.code.size(); ++i) {
    const ptx::Instruction& instruction = launch.kernel.code[i];
    const Counters::Instruction& counted = launch.counters.instructions[i];
    const ptx::Source source = instruction.source.line == 0 ? ptx::Source{} : line_of(launch.module, instruction);
    const auto made = machine.find(i);
    listing.instructions.push_back(
        {.text = std::string(instruction.text),
         .file = source.line == 0 ? "" : path_in_repository(launch.module.files()[source.file]),
         .line = source.line,
         .warp_instructions = counted.executions,
         .sectors = counted.sectors,
         .least_sectors = counted.least_sectors,
         .wavefronts = counted.wavefronts,
         .least_wavefronts = counted.least_wavefronts,
         .machine = made == machine.end() ? std::vector<std::pair<std::size_t, double>>() : made->second});
  }
  listing.cubin.assign(reinterpret_cast<const char*>(launch.cubin.data()), launch.cubin.size());
  return listing;
}

void add_instructions(LaunchCounts& sums, const ExecutedLaunch& launch, const std::vector<Kind>& kinds,
                      const MachineByPtx& machine) {
  Lines lines;
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
    line.sectors += counted.sectors;
    line.wavefronts += counted.wavefronts;
    line.excess_sectors += counted.sectors - counted.least_sectors;
    line.excess_wavefronts += counted.wavefronts - counted.least_wavefronts;
  }
  add_machine_instructions(lines, launch, machine);
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

/// Sectors of global memory that L1 serves from its data banks: not those of copies past L1.
constexpr std::uint64_t kSectorsPerWavefront = 4;

bool bypasses_l1(const ptx::Instruction& instruction) {
  return instruction.words.front() == "cp" && (instruction.has("cg") || instruction.has("bulk"));
}

/// What one multiprocessor executes.
struct Load {
  double issued = 0;                              ///< instructions of warps, without moves, which ptxas mostly removes
  std::array<double, kInstructionClasses> own{};  ///< instructions of warps
  double wavefronts = 0;
  double global_wavefronts = 0;  ///< of L1, for global memory: at most 4 sectors in each, of one request
  double tensor_flops = 0;
};

Load load_of(const std::vector<std::uint64_t>& executions, const Counters& counters, const std::vector<Kind>& kinds,
             const ptx::Kernel& kernel) {
  Load load;
  for (std::size_t i = 0; i < std::min(executions.size(), kinds.size()); ++i) {
    if (executions[i] == 0) continue;
    const auto count = static_cast<double>(executions[i]);
    const Counters::Instruction& all = counters.instructions[i];
    load.own[static_cast<std::size_t>(kinds[i].own)] += count;
    if (kinds[i].own != InstructionClass::move) load.issued += count;
    const double share = count / static_cast<double>(all.executions);
    load.wavefronts += share * static_cast<double>(all.wavefronts);
    if (!bypasses_l1(kernel.code[i]))
      load.global_wavefronts +=
          share * std::max(static_cast<double>(all.requests), static_cast<double>(all.sectors) / kSectorsPerWavefront);
    load.tensor_flops += count * static_cast<double>(kinds[i].tensor_flops);
  }
  return load;
}

void raise(TimeBound& bound, double cycles, std::string_view what) {
  if (cycles <= bound.issue_cycles) return;
  bound.issue_cycles = cycles;
  bound.busiest = what;
}

/// Raises the bound to what this multiprocessor needs for instructions of PTX.
void raise_by_classes(TimeBound& bound, const Load& load, const Card& card) {
  const auto take = [&bound](double cycles, std::string_view what) { raise(bound, cycles, what); };
  take(load.issued / kSchedulers, "issue");
  for (std::size_t i = 0; i < kInstructionClasses; ++i)
    if (const unsigned lanes = lanes_per_cycle(static_cast<InstructionClass>(i), card); lanes > 0)
      take(load.own[i] * kWarpThreads / lanes, kInstructionClassNames[i]);
}

/// The same for machine instructions, by the pipe that executes them.
void raise_by_pipes(TimeBound& bound, const std::array<double, kPipes>& by_pipe, const Card& card) {
  raise(bound, std::accumulate(by_pipe.begin(), by_pipe.end(), 0.0) / kSchedulers, "issue");
  for (std::size_t i = 0; i < kPipes; ++i)
    if (const unsigned lanes = lanes_per_cycle(static_cast<Pipe>(i), card); lanes > 0)
      raise(bound, by_pipe[i] * kWarpThreads / lanes, kPipeNames[i]);
}

/// Bytes between L1 and L2: what is stored, atomics, copies past L1, and the rest at least once.
double l2_bytes(const LaunchCounts& sums, const ExecutedLaunch& launch) {
  std::uint64_t past_l1 = 0;
  for (std::size_t i = 0; i < launch.kernel.code.size(); ++i)
    if (bypasses_l1(launch.kernel.code[i])) past_l1 += launch.counters.instructions[i].sectors;
  const std::uint64_t read =
      std::max(sums.distinct_read_bytes, past_l1 * Counters::kSectorBytes + sums.tensor_copy_bytes);
  return static_cast<double>(read + (sums.stores.sectors + sums.atomics.sectors) * Counters::kSectorBytes);
}

void add_bound(LaunchCounts& sums, const ExecutedLaunch& launch, const std::vector<Kind>& kinds,
               const std::optional<MachineExecutions>& machine) {
  const Card& card = launch.card;
  TimeBound& bound = sums.bound;
  for (const std::vector<std::uint64_t>& executions : launch.counters.by_multiprocessor) {
    const Load load = load_of(executions, launch.counters, kinds, launch.kernel);
    if (machine)
      raise_by_pipes(bound, machine->by_pipe(executions), card);
    else
      raise_by_classes(bound, load, card);
    raise(bound, load.wavefronts + load.global_wavefronts,
          load.global_wavefronts > load.wavefronts ? "L1TEX" : "shared memory");
    bound.tensor_seconds =
        std::max(bound.tensor_seconds, load.tensor_flops / card.tensor_flops_per_cycle / card.clock_hertz);
  }
  bound.issue_seconds = bound.issue_cycles / card.clock_hertz;
  bound.memory_seconds =
      static_cast<double>(sums.distinct_read_bytes + sums.distinct_written_bytes) / card.bytes_per_second;
  bound.l2_seconds = l2_bytes(sums, launch) / (l2_bytes_per_cycle(card) * card.clock_hertz);
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
  const std::optional<MachineExecutions> machine = machine_of(launch);
  const MachineByPtx by_ptx = machine_by_ptx(machine, launch.counters);
  add_instructions(sums, launch, kinds, by_ptx);
  add_resources(sums, launch);
  if (machine) sums.machine_instructions = machine->by_pipe(executions_of(launch.counters));
  add_bound(sums, launch, kinds, machine);
  if (launch.lists) sums.listing = listing_of(launch, by_ptx);
  return sums;
}

}  // namespace gradring::simulated_gpu
