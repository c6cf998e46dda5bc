// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/kernels/lib/hopper_kernels.h"
#include "tests/kernels/lib/message_of.h"
#include "tests/support/host_streams.h"

namespace gradring::tests {
namespace {

/// A matrix in which no two words are alike and none is 0, aligned to 16 bytes, and a box of it.
struct Box {
  std::vector<std::uint64_t> memory;
  std::vector<std::uint16_t> words = std::vector<std::uint16_t>(64 * 64, 0xffff);
  BoxLoad load;

  Box(std::int64_t rows, std::int64_t columns, int row, int column)
      : memory(static_cast<std::size_t>(rows * columns) / 4 + 2) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    auto* matrix = reinterpret_cast<std::uint16_t*>((at + 15) / 16 * 16);
    std::iota(matrix, matrix + rows * columns, std::uint16_t{1});
    load = {.matrix = matrix, .rows = rows, .columns = columns, .row = row, .column = column, .words = words.data()};
  }

  std::uint16_t expected(int i, int j) const {
    const std::int64_t row = load.row + i, column = load.column + j;
    if (row < 0 || row >= load.rows || column < 0 || column >= load.columns) return 0;
    return load.matrix[row * load.columns + column];
  }
};

TEST(BulkLoad, LaysRowsSwizzledAndZerosOutside) {
  struct Case {
    std::int64_t rows, columns;
    int row, column;
  };
  for (const Case& one : {Case{64, 64, 0, 0}, Case{130, 136, 64, 64}, Case{130, 136, 128, 128}, Case{3, 8, 0, 0},
                          Case{100, 72, -5, 40}, Case{100, 72, 10, -8}, Case{64, 64, 64, 0}})
    for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
      SCOPED_TRACE(testing::Message() << one.rows << "x" << one.columns << " from " << one.row << ", " << one.column);
      Box box(one.rows, one.columns, one.row, one.column);
      load_box(stream, box.load);
      finish(stream);
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j)
          ASSERT_EQ(box.words[static_cast<std::size_t>(64 * i + (j / 8 ^ i % 8) * 8 + j % 8)], box.expected(i, j))
              << "row " << i << ", column " << j;
    });
}

std::string message_of_load(const std::function<void(BoxLoad&)>& change) {
  Box box(64, 64, 0, 0);
  change(box.load);
  return message_of([&](kernels::Stream& stream) { load_box(stream, box.load); });
}

TEST(BulkLoad, CountsBytes) {
  EXPECT_THAT(
      message_of_load([](BoxLoad& load) { load.expected_bytes += 16; }),
      testing::AllOf(testing::HasSubstr("deadlock"), testing::HasSubstr("lacks 0 of 1 arrival(s) and 16 byte(s)"),
                     testing::HasSubstr("hopper_kernels.cu:")));
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.expected_bytes -= 16; }),
              testing::HasSubstr("8192 bytes land at an mbarrier that expects 8176"));
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.expected_bytes = 1 << 20; }),
              testing::HasSubstr("counts 1048575 bytes at most"));
}

TEST(BulkLoad, WantsItsPlaceAlignedAndInSharedMemory) {
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.skew = 64; }),
              testing::HasSubstr("not a multiple of 128 bytes"));
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.skew = 2048; }),
              testing::HasSubstr("outside of the block's dynamic shared memory"));
}

TEST(MakeTensorMap, RefusesWhatTheCopyEngineCannotRead) {
  EXPECT_THROW(message_of_load([](BoxLoad& load) { ++load.matrix; }), InvalidArgument);
  EXPECT_THROW(message_of_load([](BoxLoad& load) { load.columns = 60; }), InvalidArgument);
  EXPECT_THROW(message_of_load([](BoxLoad& load) { load.rows = 0; }), InvalidArgument);
}

TEST(BarrierPipe, BringsEveryRoundOnce) {
  for (int rounds : {1, 2, 3, 8})
    for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
      Box box(64 * rounds, 64, 0, 0);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(64 * 64 * rounds), 0);
      copy_through_pipe(stream, box.load.matrix, rounds, to.data());
      finish(stream);
      for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], box.load.matrix[i]) << i << " of " << rounds;
    });
}

TEST(BarrierPipe, SaysWhatIsWrong) {
  const auto message = [](PipeFault fault) {
    Box box(64 * 4, 64, 0, 0);
    std::vector<std::uint16_t> to(64 * 64 * 4);
    return message_of(
        [&](kernels::Stream& stream) { copy_through_pipe(stream, box.load.matrix, 4, to.data(), fault); });
  };
  EXPECT_THAT(message(PipeFault::never_released),
              testing::AllOf(testing::HasSubstr("deadlock"), testing::HasSubstr("wait for an mbarrier"),
                             testing::HasSubstr("lacks"), testing::HasSubstr("hopper_kernels.cu:")));
  EXPECT_THAT(message(PipeFault::filled_twice), testing::HasSubstr("one arrival too many"));
  EXPECT_THAT(message(PipeFault::not_initialised), testing::HasSubstr("has not initialised"));
  EXPECT_THAT(message(PipeFault::initialised_twice), testing::HasSubstr("initialised already"));
}

}  // namespace
}  // namespace gradring::tests
