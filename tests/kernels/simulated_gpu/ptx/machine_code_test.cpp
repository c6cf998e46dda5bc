// SPDX-License-Identifier: Apache-2.0
// What a cubin says of its kernels, compared with what ptxas prints of them.
#include "kernels/simulated_gpu/ptx/machine_code.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <span>
#include <sstream>

#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/machine_instructions.h"
#include "kernels/simulated_gpu/ptx/module.h"
#include "tests/kernels/simulated_gpu/ptx/built_module.h"
#include "tests/support/built_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"

namespace gradring::ptx {
namespace {

using gradring::tests::run_program;
using gradring::tests::TempFolder;

using Kernels = std::map<std::string, CompiledKernel>;

/// What `ptxas -v` prints.
Kernels parse(const std::string& text) {
  Kernels found;
  std::istringstream lines(text);
  CompiledKernel* kernel = nullptr;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    const auto number = [&](const char* form) -> std::size_t {
      return std::regex_search(line, match, std::regex(form)) ? std::stoull(match[1]) : 0;
    };
    if (std::regex_search(line, match, std::regex("Compiling entry function '(.*?)'"))) kernel = &found[match[1]];
    if (kernel == nullptr) continue;
    if (line.find("spill stores") != line.npos && kernel->registers == 0) {  // of the kernel; functions follow
      kernel->spill_store_bytes = number("(\\d+) bytes spill stores");
      kernel->spill_load_bytes = number("(\\d+) bytes spill loads");
    }
    if (line.find("Used ") == line.npos) continue;
    kernel->registers = static_cast<int>(number("Used (\\d+) registers"));
    kernel->stack_bytes = number("(\\d+) bytes cumulative stack size");
    kernel->static_shared_bytes = number("(\\d+) bytes smem");
  }
  return found;
}

class MachineCode : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(GRADRING_PTXAS).empty()) GTEST_SKIP() << "this build has no ptxas";
  }

  /// The file ptxas makes of a text; `printed` gets what it prints.
  std::string compiled(const std::string& ptx, const std::string& target, std::string& printed) const {
    std::ofstream(folder_.path() / "text.ptx") << ptx;
    const auto end =
        run_program({.command = {GRADRING_PTXAS, "-v", "-lineinfo", "-arch=" + target, "text.ptx", "-o", "code.cubin"},
                     .folder = folder_.path()});
    EXPECT_EQ(end.code, 0) << end.err;
    printed = end.out + end.err;
    std::ifstream file(folder_.path() / "code.cubin", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TempFolder folder_;
};

void expect_equal(const Kernels& found, const Kernels& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, kernel] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(found.contains(name));
    EXPECT_GT(kernel.registers, 0);
    EXPECT_EQ(found.at(name).registers, kernel.registers);
    EXPECT_EQ(found.at(name).stack_bytes, kernel.stack_bytes);
    EXPECT_EQ(found.at(name).spill_store_bytes, kernel.spill_store_bytes);
    EXPECT_EQ(found.at(name).spill_load_bytes, kernel.spill_load_bytes);
    EXPECT_EQ(found.at(name).static_shared_bytes, kernel.static_shared_bytes);
  }
}

/// `values` numbers, alive at once in blocks of 1024 threads, which have 64 registers each; `width` numbers are moved
/// together.
std::string greedy_kernel(const std::string& name, int values, int width) {
  std::string loads, sums, stores;
  for (int i = 0; i < values; i += width) {
    std::string list;
    for (int k = 0; k < width; ++k) list += (k > 0 ? ", %f" : "%f") + std::to_string(i + k);
    const std::string vector = width > 1 ? ".v" + std::to_string(width) : "";
    const std::string place = "[%rd2+" + std::to_string(i * 4096) + "]";
    loads += "ld.global" + vector + ".f32 {" + list + "}, " + place + ";\n";
    stores += "st.global" + vector + ".f32 " + place + ", {" + list + "};\n";
    for (int k = 0; k < width; ++k) {
      const std::string own = "%f" + std::to_string(i + k), other = "%f" + std::to_string((7 * (i + k) + 3) % values);
      sums += "fma.rn.f32 " + own + ", " + other + ", " + own + ", " + other + ";\n";
    }
  }
  if (width == 1) {
    for (std::string* text : {&loads, &stores}) std::erase_if(*text, [](char c) { return c == '{' || c == '}'; });
  }
  return ".visible .entry " + name + "(.param .u64 x) .maxntid 1024, 1, 1 {\n.reg .f32 %f<" + std::to_string(values) +
         ">;\n.reg .b64 %rd<4>;\n.reg .b32 %r<2>;\n.shared .align 16 .b8 used[" + std::to_string(16 * width) +
         "];\nld.param.u64 %rd1, [x];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd2, %rd2, %rd1;\n" +
         loads + "bar.sync 0;\n" + sums + sums +
         "st.shared.f32 [used], %f1;\nbar.sync 0;\nld.shared.f32 %f0, [used];\n" + stores + "ret;\n}\n";
}

TEST_F(MachineCode, SaysWhatPtxasPrints) {
  for (const char* target : {"sm_80", "sm_90"}) {
    SCOPED_TRACE(target);
    const std::string text = std::string(".version 8.0\n.target ") + target +
                             "\n.address_size 64\n.visible .entry nothing() {\nret;\n}\n" +
                             greedy_kernel("one", 96, 1) + greedy_kernel("two", 128, 2) + greedy_kernel("four", 192, 4);
    std::string printed;
    const std::string elf = compiled(text, target, printed);
    const Kernels expected = parse(printed);
    ASSERT_EQ(expected.size(), 4u) << printed;
    EXPECT_GT(expected.at("one").spill_store_bytes, 0u) << "not greedy enough";
    EXPECT_GT(expected.at("four").spill_load_bytes, 0u) << "not greedy enough";
    EXPECT_EQ(expected.at("four").static_shared_bytes, 64u);
    expect_equal(compiled_kernels(std::as_bytes(std::span(elf))), expected);
  }
}

TEST_F(MachineCode, NamesTheLinesOfThePtxAndBasicBlocks) {
  // A loop with a branch in it; ptxas neither unrolls it nor replaces the branch by predicates.
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n"
      ".reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<4>;\n.loc 1 1 1\n"
      "ld.param.u64 %rd1, [x];\nmov.u32 %r1, 0;\n$again:\natom.global.add.u32 %r2, [%rd1], 1;\n"
      "setp.eq.u32 %p1, %r2, 7;\n@%p1 bra $skip;\nbar.sync 0;\natom.global.add.u32 %r3, [%rd1+4], 2;\n"
      "st.global.u32 [%rd1+8], %r3;\n$skip:\nadd.u32 %r1, %r1, %r2;\nsetp.lt.u32 %p2, %r1, 1000;\n"
      "@%p2 bra $again;\nret;\n}\n.file 1 \"k.cu\"\n";
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string line; std::getline(words, line);) lines.push_back(line);
  const Module module(text);
  std::size_t index = 0;
  for (const unsigned line : module.lines_of(*module.kernel("k")))
    EXPECT_NE(lines.at(line).find(module.kernel("k")->code[index++].text), std::string::npos) << line;
  for (const char* target : {"sm_80", "sm_90"}) {
    std::string printed, own = text;
    own.replace(own.find("sm_90"), 5, target);
    const std::string elf = compiled(own, target, printed);
    const auto code = compiled_kernels(std::as_bytes(std::span(elf))).at("k").instructions;
    constexpr std::uint16_t kAtomic = 0x1a8, kExit = 0x14d;
    std::set<unsigned> blocks;
    std::size_t atomics = 0, exits = 0, padding = 0;
    for (const MachineInstruction& instruction : code) {
      if (instruction.block == MachineInstruction::kNoBlock) {
        ++padding;
        continue;
      }
      blocks.insert(instruction.block);
      EXPECT_LT(instruction.ptx_line, lines.size());
      exits += instruction.opcode == kExit ? 1 : 0;
      if (instruction.opcode != kAtomic) continue;
      ++atomics;
      EXPECT_NE(lines[instruction.ptx_line].find("atom"), std::string::npos) << lines[instruction.ptx_line];
    }
    EXPECT_EQ(atomics, 2u);
    EXPECT_EQ(exits, 1u);
    EXPECT_GE(blocks.size(), 3u) << "before the loop, in it, and behind it";
    EXPECT_GT(padding, 0u) << "the loop of one branch behind the end";
  }
}

/// Words of an H100 as nvdisasm prints them. A BRA with a second predicate is taken, BRA.DIV is not.
TEST(MachineInstructions, FollowsABranchWithTwoPredicates) {
  constexpr std::uint64_t kExit[] = {0x000000000000794d, 0x000fea0003800000};
  constexpr std::uint64_t kBranch[] = {0x0000000000048947, 0x000fea0000800000};           // @!P0 BRA P1, 0x20
  constexpr std::uint64_t kDivergentBranch[] = {0x0000000000047947, 0x000fec000b800000};  // BRA.DIV UR4, 0x20
  const auto last_block = [&](std::span<const std::uint64_t, 2> first) {
    const std::uint64_t code[] = {first[0], first[1], kExit[0], kExit[1], kExit[0], kExit[1]};
    return machine_instructions(std::as_bytes(std::span(code)), 90).back().block;
  };
  EXPECT_EQ(last_block(kBranch), 2u);
  EXPECT_EQ(last_block(kDivergentBranch), MachineInstruction::kNoBlock);
}

TEST_F(MachineCode, RejectsDamage) {
  std::string printed;
  const std::string elf = compiled(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing() {\nret;\n}\n", "sm_90", printed);
  const auto read = [](const std::string& bytes) { return compiled_kernels(std::as_bytes(std::span(bytes))); };
  ASSERT_EQ(read(elf).size(), 1u);
  std::size_t refused = 0;
  for (std::size_t size = 0; size < elf.size(); size += 8) {
    try {
      read(elf.substr(0, size));
    } catch (const PtxError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, elf.size() / 16) << "the tables are at the end";
  for (std::size_t byte = 0; byte < elf.size(); ++byte) {  // anything but a crash
    std::string damaged = elf;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0xff);
    try {
      read(damaged);
    } catch (const PtxError&) {
      ++refused;
    }
  }
  std::string other = elf;
  other[18] = 62;  // x86-64
  EXPECT_THROW(read(other), PtxError);
}

/// The module's own code, compiled a second time: the texts that ptxas compiles quickly.
TEST_F(MachineCode, OfTheBuiltModuleIsThatOfItsPtx) {
  constexpr std::size_t kTexts = 4;
  const std::string library = gradring::tests::built_file(GRADRING_CUDA_MODULE);
  auto binaries = tests::binaries_in(library);
  ASSERT_GT(binaries.size(), kTexts);
  std::ranges::sort(binaries, {}, [](const tests::BuiltBinary& binary) { return binary.texts.front().text.size(); });
  for (std::size_t i = 0; i < kTexts; ++i) {
    ASSERT_EQ(binaries[i].texts.size(), binaries[i].code.size());
    for (std::size_t k = 0; k < binaries[i].texts.size(); ++k) {
      ASSERT_EQ(binaries[i].texts[k].compute_capability, binaries[i].code[k].compute_capability);
      std::string printed;
      compiled(binaries[i].texts[k].text, std::string(Module(binaries[i].texts[k].text).target()), printed);
      expect_equal(compiled_kernels(std::as_bytes(std::span(binaries[i].code[k].elf))), parse(printed));
    }
  }
}

}  // namespace
}  // namespace gradring::ptx
