// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "kernels/base/error.h"
#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/counters/summary.h"

namespace gradring::tests {
namespace {

using namespace simulated_gpu;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Cards, HaveThePeaksOfTheirDataSheets) {
  struct Row {
    const char* card;
    double fp32_teraflops, tensor_teraflops;
  };
  // An H100 and an H200 have their 989 TFLOPS of tensor cores at 1.83 GHz.
  for (const Row& row :
       {Row{"t4", 8.1, 65}, Row{"a100", 19.5, 312}, Row{"rtx3090", 35.6, 142}, Row{"rtx4090", 82.6, 330.3},
        Row{"h100", 66.9, 989 * 1.98 / 1.83}, Row{"h200", 66.9, 989 * 1.98 / 1.83}}) {
    const Card* const card = find_card(row.card);
    ASSERT_NE(card, nullptr) << row.card;
    const double cycles = card->multiprocessors * card->clock_hertz * 1e-12;
    EXPECT_NEAR(2 * cycles * lanes_per_cycle(InstructionClass::fp32, *card), row.fp32_teraflops, 0.1) << row.card;
    EXPECT_NEAR(cycles * card->tensor_flops_per_cycle, row.tensor_teraflops, 0.005 * row.tensor_teraflops) << row.card;
  }
  EXPECT_EQ(cards().size(), 6u);
}

TEST(Cards, HaveTheLimitsOfTheirComputeCapability) {
  const Card& t4 = *find_card("t4");
  EXPECT_EQ(t4.compute_capability(), 75);
  EXPECT_EQ(t4.threads_per_multiprocessor, 1024);
  EXPECT_EQ(t4.shared_bytes_per_block, 64 << 10);
  EXPECT_EQ(t4.reserved_shared_bytes, 0u);
  const Card& rtx4090 = *find_card("rtx4090");
  EXPECT_EQ(rtx4090.compute_capability(), 89);
  EXPECT_EQ(rtx4090.threads_per_multiprocessor, 1536);
  EXPECT_EQ(rtx4090.blocks_per_multiprocessor, 24);
  EXPECT_EQ(rtx4090.shared_bytes_per_multiprocessor, 100 << 10);
}

std::string message_of(const auto& function) {
  try {
    function();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

constexpr const char* kMine = R"(# mine
name = Mine of one
compute_capability = 8.6
multiprocessors = 28

clock_mhz = 1777.5
memory_gib = 12
memory_bus_bits = 192
memory_gb_per_second = 360
pcie_gb_per_second = 32
l2_kib = 2304
tensor_flops_per_cycle = 1024
)";

TEST(CardFiles, DescribeACard) {
  const std::string path = testing::TempDir() + "mine.card";
  std::ofstream(path) << kMine;
  const Card card = card_of(path);
  EXPECT_EQ(card.name, path);
  EXPECT_EQ(card.full_name, "Mine of one");
  EXPECT_EQ(card.compute_capability(), 86);
  EXPECT_EQ(card.multiprocessors, 28);
  EXPECT_EQ(card.clock_hertz, 1777.5e6);
  EXPECT_EQ(card.memory_bytes, std::size_t{12} << 30);
  EXPECT_EQ(card.l2_bytes, 2304 << 10);
  EXPECT_EQ(card.threads_per_multiprocessor, 1536);
}

TEST(CardFiles, AreRejectedWithTheLine) {
  struct Row {
    const char *line, *instead, *message;
  };
  for (const Row& row :
       {Row{"memory_gib = 12", "memory_gib = twelve",
            ", line 7 has memory_gib = 'twelve', expected a number from 1 to 4096"},
        Row{"memory_gib = 12", "memory_gib = 0", ", line 7 has memory_gib = '0', expected a number from 1 to 4096"},
        Row{"memory_gib = 12", "memory_gib = 1.5", ", line 7 has memory_gib = '1.5', expected a whole number"},
        Row{"memory_gib = 12", "memory_gib", ", line 7 has 'memory_gib', expected KEY = VALUE"},
        Row{"memory_gib = 12", "multiprocessors = 12", ", line 7 has multiprocessors again, which line 4 has"},
        Row{"memory_gib = 12", "", " has no memory_gib"},
        Row{"memory_gib = 12", "memory_gib = 12\nwarps = 4", ", line 8 has the unknown key 'warps'"},
        Row{"name = Mine of one", "name =", ", line 2 has name without a value"},
        Row{"capability = 8.6", "capability = 12.0",
            ", line 3 has compute_capability = '12.0', expected one of 7.5, 8.0, 8.6, 8.9, 9.0"}}) {
    std::string text = kMine;
    text.replace(text.find(row.line), std::string(row.line).size(), row.instead);
    EXPECT_EQ(message_of([&] { parse_card("my.card", text); }), std::string("the GPU's file my.card") + row.message);
  }
}

TEST(CardFiles, AreTakenForNamesWithASlashOrEnding) {
  EXPECT_THAT(message_of([] { card_of("v100"); }),
              AllOf(HasSubstr("'v100'"), HasSubstr("t4, a100, rtx3090, rtx4090, h100, h200"), HasSubstr("FILE.card")));
  EXPECT_THAT(message_of([] { card_of("absent.card"); }),
              AllOf(StartsWith("the GPU's file absent.card cannot be read"), EndsWith("No such file or directory")));
  EXPECT_THAT(message_of([] { card_of("/absent/v100"); }), StartsWith("the GPU's file /absent/v100 cannot be read"));
}

}  // namespace
}  // namespace gradring::tests
