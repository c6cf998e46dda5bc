// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/machine_executions.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/counters/summary.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// A kernel whose instructions are on lines of their own, with machine code that was made by hand.
class HandMadeCode : public testing::Test {
 protected:
  /// A loop of ten rounds on lines 11 to 14, before and behind it other instructions.
  static constexpr const char* kText =
      ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"/kernels/ops/elementwise/1_flat.cu\"\n"
      ".visible .entry k(.param .u64 x)\n{\n.reg .b32 %r<4>; .reg .pred %p; .reg .b64 %rd<4>;\n.loc 1 20 3\n"
      "ld.param.u64 %rd1, [x];\nmov.u32 %r1, 0;\n"
      "$again: add.u32 %r1, %r1, 1;\nld.global.u32 %r2, [%rd1];\nsetp.lt.u32 %p, %r1, 10;\n@%p bra $again;\n"
      ".loc 1 21 3\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
  static constexpr unsigned kParameter = 9, kMove = 10, kAdd = 11, kLoad = 12, kCompare = 13, kBranch = 14, kStore = 16,
                            kEnd = 17;

  LaunchCounts counts_with(std::vector<ptx::MachineInstruction> code) {
    const ptx::CompiledKernel compiled{.registers = 16, .instructions = std::move(code)};
    const Executable executable(module_, *module_.kernel("k"));
    GlobalMemory memory;
    const DeviceArray<U32> array(memory, std::vector<U32>(32, 1));
    alignas(128) const std::uint64_t address = array.address();
    const LaunchSpec spec{.grid = {}, .block = {32}, .parameters = std::as_bytes(std::span(&address, 1))};
    const Counters counters = run(executable, spec, memory, {.checks_races = false, .counted_multiprocessors = 132});
    return summary_of({.module = module_,
                       .kernel = executable.kernel(),
                       .code = compiled,
                       .spec = spec,
                       .counters = counters,
                       .card = *find_card("h100"),
                       .lists = true},
                      "k");
  }

 private:
  ptx::Module module_{kText};
};

constexpr std::uint16_t kIadd = 0x010, kImad = 0x024, kIsetp = 0x00c, kLdg = 0x181, kBra = 0x147, kStg = 0x186,
                        kExit = 0x14d, kUldc = 0x0b9;

TEST_F(HandMadeCode, IsExecutedAsOftenAsItsPtx) {
  // A loop of four, from which the add of another address was moved before it.
  const LaunchCounts counts = counts_with({{kUldc, kParameter, 0},
                                           {kImad, kMove, 0},
                                           {kImad, kAdd, 0},
                                           {kIadd, kAdd, 1},
                                           {kLdg, kLoad, 1},
                                           {kIsetp, kCompare, 1},
                                           {kBra, kBranch, 1},
                                           {kStg, kStore, 2},
                                           {kExit, kEnd, 2},
                                           {kBra, kEnd, ptx::MachineInstruction::kNoBlock}});
  const auto executed_by = [&](Pipe pipe) { return counts.machine_instructions[static_cast<std::size_t>(pipe)]; };
  EXPECT_EQ(executed_by(Pipe::uniform), 1);
  EXPECT_EQ(executed_by(Pipe::integer_fma), 2);
  EXPECT_EQ(executed_by(Pipe::alu), 20);
  EXPECT_EQ(executed_by(Pipe::lsu), 11);
  EXPECT_EQ(executed_by(Pipe::other), 11);
  EXPECT_EQ(counts.all_machine_instructions(), 45);
  EXPECT_EQ(counts.bound.issue_cycles, 45 / 4.0) << "more than 20 at 2 per cycle on the ALU, and 11 wavefronts";
  EXPECT_EQ(counts.bound.busiest, "issue");
  ASSERT_EQ(counts.lines.size(), 2u);
  EXPECT_EQ(counts.lines[0].machine_instructions, 43u);
  EXPECT_EQ(counts.lines[1].machine_instructions, 2u);
  EXPECT_EQ(counts.lines[1].sectors, 1u);
  ASSERT_TRUE(counts.listing);
  EXPECT_EQ(counts.listing->instructions[2].text, "add.u32 %r1, %r1, 1;");
  EXPECT_EQ(counts.listing->instructions[2].line, 20u);
  EXPECT_EQ(counts.listing->instructions[2].machine.size(), 2u);
}

TEST_F(HandMadeCode, SharesTheTurnsOfAnUnrolledLoop) {
  // Ten turns: two of the loop that has four copies, one of that with two, none of the last.
  std::vector<ptx::MachineInstruction> code = {{kUldc, kParameter, 0}, {kImad, kMove, 0}};
  unsigned block = 0;
  for (const int copies : {4, 2, 1}) {
    code.insert(code.end(), static_cast<std::size_t>(copies), {kLdg, kLoad, ++block});
    code.push_back({kBra, kBranch, block});
    code.push_back({kIsetp, kCompare, ++block});  // passed once
  }
  code.insert(code.end(), {{kStg, kStore, 7}, {kExit, kEnd, 7}});
  const LaunchCounts counts = counts_with(code);
  const auto executed_by = [&](Pipe pipe) { return counts.machine_instructions[static_cast<std::size_t>(pipe)]; };
  EXPECT_EQ(executed_by(Pipe::lsu), 2 * 4 + 2 + 1) << "the loads, and the store";
  EXPECT_EQ(executed_by(Pipe::alu), 3);
  EXPECT_EQ(executed_by(Pipe::other), 2 + 1 + 1) << "branches, and the end";
}

TEST_F(HandMadeCode, SharesTheExecutionsOfBlocksWithoutLoads) {
  std::vector<ptx::MachineInstruction> code;
  for (const unsigned block : {1u, 2u, 3u, 4u, 5u})
    code.insert(code.end(), {{kIadd, kAdd, block}, {kIsetp, kCompare, block}, {kBra, kBranch, block}});
  EXPECT_EQ(counts_with(code).all_machine_instructions(), 30);
}

TEST_F(HandMadeCode, BeginsOnceWithWhatWasMovedToTheFirstBlock) {
  const LaunchCounts counts =
      counts_with({{kIadd, kAdd, 0}, {kIsetp, kCompare, 0}, {kUldc, kParameter, 0}, {kExit, kEnd, 1}});
  EXPECT_EQ(counts.all_machine_instructions(), 4) << "not ten times, as in the loop";
}

}  // namespace
}  // namespace gradring::simulated_gpu
