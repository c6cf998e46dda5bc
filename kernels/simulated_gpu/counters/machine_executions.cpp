// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/machine_executions.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "kernels/simulated_gpu/counters/summary.h"

namespace gradring::simulated_gpu {
namespace {

using enum Pipe;

struct PipeOpcodes {
  Pipe pipe;
  std::vector<std::uint16_t> opcodes;
};

const std::map<std::uint16_t, Pipe>& pipes() {
  static const std::map<std::uint16_t, Pipe> all = [] {
    const PipeOpcodes table[] = {
        // MOV P2R R2P SEL FSEL FMNMX FSETP ISETP VIMNMX3 IADD3 LEA LOP3 IABS PRMT IMNMX SHF PLOP3 VIADD F2FP I2FP
        // VIADDMNMX VIMNMX
        {alu, {0x002, 0x003, 0x004, 0x007, 0x008, 0x009, 0x00b, 0x00c, 0x00f, 0x010, 0x011,
               0x012, 0x013, 0x016, 0x017, 0x019, 0x01c, 0x036, 0x03e, 0x045, 0x046, 0x048}},
        {fma, {0x020, 0x021, 0x023}},                 // FMUL FADD FFMA
        {integer_fma, {0x024, 0x025, 0x026, 0x027}},  // IMAD IMAD.WIDE IDP IMAD.HI
        {half, {0x030, 0x032, 0x033, 0x034, 0x035}},  // HADD2 HMUL2 HMNMX2 HSETP2 HFMA2
        {fp64, {0x028, 0x029, 0x02a, 0x02b}},         // DMUL DADD DSETP DFMA
        {tensor, {0x03a, 0x03c, 0x1f0}},              // MOVM HMMA HGMMA
        // MUFU FLO BREV FCHK F2I I2F FRND F2F POPC
        {xu, {0x100, 0x101, 0x102, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113}},
        // LDSM LDC LD LDG LDL LDS ST STG STL STS SHFL ATOM ATOMS ATOMG RED LDGSTS
        {lsu,
         {0x03b, 0x182, 0x180, 0x181, 0x183, 0x184, 0x185, 0x186, 0x187, 0x188, 0x189, 0x18a, 0x18c, 0x18e, 0x1a8,
          0x1ae}},
        // UMOV USEL UISETP UIADD3 ULEA ULOP3 UPRMT USHF UPLOP3 UIMAD ULDC R2UR S2UR
        {uniform,
         {0x082, 0x087, 0x08c, 0x090, 0x091, 0x092, 0x096, 0x099, 0x09c, 0x0a4, 0x0a5, 0x0b9, 0x0bb, 0x0ca, 0x1c2,
          0x1c3}},
    };
    std::map<std::uint16_t, Pipe> made;
    for (const PipeOpcodes& row : table)
      for (const std::uint16_t opcode : row.opcodes) made[opcode] = row.pipe;
    return made;
  }();
  return all;
}

/// The instruction of PTX on each line; of several on one, the one that is executed most.
std::map<unsigned, std::size_t> ptx_by_line(const ptx::Module& module, const ptx::Kernel& kernel,
                                            const Counters& counters) {
  std::map<unsigned, std::size_t> by_line;
  const std::vector<unsigned> lines = module.lines_of(kernel);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto [known, is_new] = by_line.emplace(lines[i], i);
    if (!is_new && counters.instructions[i].executions > counters.instructions[known->second].executions)
      known->second = i;
  }
  return by_line;
}

/// ptxas makes exactly one instruction with such an opcode of one of PTX: memory, shuffles, products on tensor cores,
/// and f32. So there are as many copies of the PTX as of that.
bool is_one_to_one(const ptx::Instruction& instruction, std::uint16_t opcode) {
  // FMUL FADD FFMA LDSM HMMA LD LDG LDL LDS ST STG STL STS SHFL ATOM ATOMS RED ATOMG LDGSTS HGMMA
  static const std::set<std::uint16_t> opcodes = {0x020, 0x021, 0x023, 0x03b, 0x03c, 0x180, 0x181, 0x183, 0x184, 0x185,
                                                  0x186, 0x187, 0x188, 0x189, 0x18a, 0x18c, 0x18e, 0x1a8, 0x1ae, 0x1f0};
  const InstructionClass own = class_of(instruction);
  const bool is_simple = own == InstructionClass::fp32 || own == InstructionClass::load_store ||
                         own == InstructionClass::tensor || own == InstructionClass::warp;
  return is_simple && instruction.words.front() != "wmma" && opcodes.contains(opcode);
}

/// Machine instructions that were made for one of PTX: how many in each basic block.
using Copies = std::map<unsigned, std::size_t>;

std::size_t count_of(const Copies& copies) {
  std::size_t sum = 0;
  for (const auto& [block, count] : copies) sum += count;
  return sum;
}

/// A loop of PTX that no other is in.
struct Loop {
  std::size_t begin = 0, branch = 0;  ///< its first instruction, and the branch back to that
  double entries = 0;                 ///< how often it is begun
};

/// The innermost loop of each instruction of a kernel; null for those in none.
class Loops {
 public:
  Loops(const ptx::Kernel& kernel, const Counters& counters) : own_(kernel.code.size()) {
    for (std::size_t i = 0; i < kernel.code.size(); ++i) {
      const ptx::Instruction& instruction = kernel.code[i];
      if (instruction.words.front() != "bra" || instruction.operands.empty()) continue;
      const std::size_t begin = instruction.operands.front().target;
      if (begin == 0 || begin > i || i + 1 == kernel.code.size()) continue;
      const auto executions = [&](std::size_t at) { return static_cast<double>(counters.instructions[at].executions); };
      loops_.push_back({begin, i, std::min(executions(begin - 1), executions(i + 1))});
    }
    for (const Loop& loop : loops_)
      for (std::size_t i = loop.begin; i <= loop.branch; ++i)
        if (own_[i] == nullptr || loop.branch - loop.begin < own_[i]->branch - own_[i]->begin) own_[i] = &loop;
  }

  const Loop* of(std::size_t instruction) const { return own_[instruction]; }

 private:
  std::deque<Loop> loops_;
  std::vector<const Loop*> own_;
};

/// By block, the share of an instruction's executions that one of its copies there has. Of a loop that ptxas unrolled,
/// the block with most copies takes what it can of each turn, the next one of the rest; else all have the same.
std::map<unsigned, double> shares_of(const Copies& copies, double executions, const Loop* loop) {
  std::map<unsigned, double> shares;
  for (const auto& [block, count] : copies) shares[block] = 1.0 / static_cast<double>(count_of(copies));
  if (loop == nullptr || loop->entries == 0 || executions == 0 || copies.size() < 2) return shares;
  std::vector<std::pair<double, unsigned>> most_first;
  for (const auto& [block, count] : copies) most_first.emplace_back(static_cast<double>(count), block);
  std::ranges::sort(most_first, std::greater());
  if (std::ranges::adjacent_find(most_first, {}, &std::pair<double, unsigned>::first) != most_first.end())
    return shares;
  double turns = executions / loop->entries;
  for (std::size_t i = 0; i < most_first.size(); ++i) {
    const auto& [count, block] = most_first[i];
    const double rounds = i + 1 == most_first.size() ? turns / count : std::floor(turns / count);
    shares[block] = rounds * loop->entries / executions;
    turns -= rounds * count;
  }
  return shares;
}

}  // namespace

Pipe pipe_of(std::uint16_t opcode) {
  const auto found = pipes().find(opcode);
  return found == pipes().end() ? Pipe::other : found->second;
}

unsigned lanes_per_cycle(Pipe pipe, const Card& card) {
  const int capability = card.compute_capability();
  const bool is_wide = capability == 86 || capability == 89 || capability == 90;  // two pipes of 64 for fp32
  switch (pipe) {
    case alu:
    case integer_fma: return 64;
    case fma: return is_wide ? 128 : 64;
    case xu: return 16;
    case lsu: return capability == 75 ? 16 : 32;
    case fp64: return capability == 80 ? 32 : capability == 90 ? 64 : 2;
    default: return 0;
  }
}

MachineExecutions::MachineExecutions(const ptx::Module& module, const ptx::Kernel& kernel,
                                     const ptx::CompiledKernel& code, const Counters& counters)
    : code_(code), ptx_of_(code.instructions.size(), npos) {
  const std::map<unsigned, std::size_t> by_line = ptx_by_line(module, kernel, counters);
  std::map<std::pair<std::size_t, std::uint16_t>, Copies> copies;  // by PTX and opcode
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    const ptx::MachineInstruction& instruction = code.instructions[i];
    const auto found = by_line.find(instruction.ptx_line);
    if (found == by_line.end()) continue;
    ptx_of_[i] = found->second;
    if (instruction.block == ptx::MachineInstruction::kNoBlock) continue;
    is_known_ = true;
    ++copies[{found->second, instruction.opcode}][instruction.block];
  }
  const Loops loops(kernel, counters);
  struct Candidate {
    bool is_exact = false;  ///< its copies are known
    double executions = 0;
    Representative self;
  };
  std::set<const Loop*> unrolled;
  for (const auto& [of, own] : copies)
    if (own.size() > 1 && loops.of(of.first) != nullptr && is_one_to_one(kernel.code[of.first], of.second))
      unrolled.insert(loops.of(of.first));
  std::map<unsigned, std::vector<Candidate>> by_block;
  for (std::size_t i = 0; i < code.instructions.size(); ++i) {
    const ptx::MachineInstruction& instruction = code.instructions[i];
    if (ptx_of_[i] == npos || instruction.block == ptx::MachineInstruction::kNoBlock) continue;
    const bool is_exact = is_one_to_one(kernel.code[ptx_of_[i]], instruction.opcode);
    const Copies& own = copies[{ptx_of_[i], instruction.opcode}];
    const auto executions = static_cast<double>(counters.instructions[ptx_of_[i]].executions);
    const Loop* const loop = loops.of(ptx_of_[i]);
    const bool is_whole =
        loop != nullptr && executions == static_cast<double>(counters.instructions[loop->branch].executions);
    double share = 1.0 / static_cast<double>(own.size());
    if (is_exact)
      share = shares_of(own, executions, is_whole ? loop : nullptr).at(instruction.block);
    else if (is_whole && executions > 0 && loop->entries > 0 && unrolled.contains(loop))
      share = loop->entries / executions;  // a block between the copies of the loop
    by_block[instruction.block].push_back({is_exact, executions * share, {ptx_of_[i], share}});
  }
  for (auto& [block, candidates] : by_block) {
    if (std::ranges::any_of(candidates, &Candidate::is_exact))
      std::erase_if(candidates, [](const Candidate& each) { return !each.is_exact; });
    const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(candidates.size() / 2);
    std::ranges::nth_element(candidates, middle, {}, &Candidate::executions);
    blocks_.resize(block + 1);
    blocks_[block] = middle->self;
  }
  // Also instructions of later blocks are in the first one, moved there by ptxas; each warp begins in it once.
  if (!blocks_.empty() && !code.instructions.empty() && code.instructions[0].block == 0) blocks_[0] = {0, 1.0};
}

double MachineExecutions::executions(const ptx::MachineInstruction& instruction,
                                     std::span<const std::uint64_t> of_ptx) const {
  if (instruction.block >= blocks_.size()) return 0;
  const auto& [ptx, share] = blocks_[instruction.block];
  return ptx < of_ptx.size() ? static_cast<double>(of_ptx[ptx]) * share : 0;
}

std::vector<double> MachineExecutions::of_each(std::span<const std::uint64_t> of_ptx) const {
  std::vector<double> all;
  for (const ptx::MachineInstruction& instruction : code_.instructions) all.push_back(executions(instruction, of_ptx));
  return all;
}

std::array<double, kPipes> MachineExecutions::by_pipe(std::span<const std::uint64_t> of_ptx) const {
  std::array<double, kPipes> sums{};
  for (const ptx::MachineInstruction& instruction : code_.instructions)
    sums[static_cast<std::size_t>(pipe_of(instruction.opcode))] += executions(instruction, of_ptx);
  return sums;
}

}  // namespace gradring::simulated_gpu
