// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "tests/kernels/lib/kernels.h"
#include "tests/support/each_stream.h"
#include "tests/support/expect_close.h"
#include "tests/support/values.h"

namespace gradring::tests {

/// Small multiples of an eighth, in a row-major matrix: all their products and sums are exact.
inline TypedArray eighths(kernels::DType dtype, std::size_t elements, std::uint64_t seed) {
  std::vector<double> values = random_values(elements, seed, -4, 5);
  for (double& value : values) value = static_cast<int>(value) / 8.0;
  return TypedArray(dtype, values);
}

/// start + a b, where a is [rows, 16] and b [16, columns]; at(i, j) of a and b.
template <class A, class B>
std::vector<double> product(std::size_t rows, std::size_t columns, double start, A a_at, B b_at) {
  std::vector<double> c(rows * columns, start);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      for (std::size_t i = 0; i < 16; ++i) c[row * columns + column] += a_at(row, i) * b_at(i, column);
  return c;
}

/// What the CPU says about work that breaks a rule.
template <class Enqueue>
std::string message_of(Enqueue enqueue) {
  kernels::HostDevice device(simt::ExecutorOptions{.workers = 1});
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  try {
    enqueue(*stream);
  } catch (const simt::Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

namespace {

using kernels::DType;

/// Rows of 8 words, no two alike, and lanes that point at them in no order.
struct LoadCase {
  static constexpr int kRows = 37;
  std::vector<std::uint16_t> words = std::vector<std::uint16_t>(kRows * 8);
  std::vector<std::int32_t> rows = std::vector<std::int32_t>(32);
  std::vector<std::uint32_t> registers = std::vector<std::uint32_t>(32 * 4, 0xdeadbeef);
  MatrixLoad load{.words = words.data(), .row_count = kRows, .rows = rows.data(), .registers = registers.data()};

  LoadCase() {
    std::iota(words.begin(), words.end(), std::uint16_t{1});
    for (std::size_t lane = 0; lane < rows.size(); ++lane) rows[lane] = static_cast<std::int32_t>(lane * 23 % kRows);
  }

  std::uint32_t word(int matrix, int row, int column) const {
    return words[static_cast<std::size_t>(rows[static_cast<std::size_t>(8 * matrix + row)] * 8 + column)];
  }
};

TEST(LoadMatrices, GivesEveryLaneTheDocumentedWords) {
  for (bool transpose : {false, true})
    for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
      LoadCase c;
      c.load.transpose = transpose;
      load_matrices(stream, c.load);
      finish(stream);
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i) {
          const int outer = lane / 4, inner = lane % 4 * 2;
          const std::uint32_t expected = transpose ? c.word(i, inner, outer) | c.word(i, inner + 1, outer) << 16
                                                   : c.word(i, outer, inner) | c.word(i, outer, inner + 1) << 16;
          ASSERT_EQ(c.registers[static_cast<std::size_t>(lane * 4 + i)], expected)
              << "lane " << lane << ", matrix " << i << (transpose ? ", transposed" : "");
        }
    });
}

TEST(LoadMatrices, SeesWritesOfOtherLanesBeforeTheBarrier) {
  for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
    std::vector<std::uint32_t> registers(32 * 4);
    load_what_others_wrote(stream, registers.data());
    finish(stream);
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(registers[lane * 4 + i], (31 - 8 * i - lane / 4) * 0x10001u);
  });
}

std::string message_of_load(const LoadCase& c) {
  return message_of([&](kernels::Stream& stream) { load_matrices(stream, c.load); });
}

TEST(LoadMatricesOnCpu, RejectsMisalignedRowsAndMissingLanes) {
  LoadCase misaligned;
  misaligned.load.skew = 8;
  EXPECT_THAT(message_of_load(misaligned),
              testing::AllOf(testing::HasSubstr("not a multiple of 16 bytes"), testing::HasSubstr("kernels.cu:")));
  LoadCase incomplete;
  incomplete.load.everybody = false;
  EXPECT_THAT(message_of_load(incomplete), testing::HasSubstr("kernels.cu:"));
}

TEST(Mma, MultipliesElementsAtTheirDocumentedPositions) {
  for (DType dtype : {DType::f16, DType::bf16})
    for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
      const TypedArray a = eighths(dtype, 256, 1);
      const TypedArray b = eighths(dtype, 128, 2);
      TypedArray c(DType::f32, std::vector<double>(128, 3.0));
      multiply_places(stream, dtype, a.data(), b.data(), c.as<float>());
      finish(stream);
      const std::vector<double> as = a.values(), bs = b.values();
      expect_equal(c.values(), product(
                                   16, 8, 3.0, [&](auto row, auto i) { return as[row * 16 + i]; },
                                   [&](auto i, auto column) { return bs[i * 8 + column]; }));
    });
}

TEST(Mma, TakesLdmatrixOperandsInEitherStorage) {
  for (DType dtype : {DType::f16, DType::bf16})
    for (bool a_by_inner : {false, true})
      for (bool b_by_column : {false, true})
        for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
          const TypedArray a = eighths(dtype, 256, 3);
          const TypedArray b = eighths(dtype, 256, 4);
          TypedArray c = TypedArray::unwritten(DType::f32, 256);
          multiply_loaded(stream, dtype, {a_by_inner, b_by_column}, a.data(), b.data(), c.as<float>());
          finish(stream);
          const std::vector<double> as = a.values(), bs = b.values();
          expect_equal(c.values(),
                       product(
                           16, 16, 0.0, [&](auto row, auto i) { return as[a_by_inner ? i * 16 + row : row * 16 + i]; },
                           [&](auto i, auto column) { return bs[b_by_column ? column * 16 + i : i * 16 + column]; }));
        });
}

TEST(MatrixDescriptorOnCpu, HasItsFieldsWherePtxSays) {
  constexpr auto kDescriptor = simt::MatrixDescriptor::of(0x12340, 0x2000, 0x400);
  EXPECT_EQ(kDescriptor.bits, 0x1234ull | 0x200ull << 16 | 0x40ull << 32 | 1ull << 62);
  EXPECT_EQ(kDescriptor.address(), 0x12340u);
  EXPECT_EQ(kDescriptor.leading_bytes(), 0x2000u);
  EXPECT_EQ(kDescriptor.stride_bytes(), 0x400u);
  EXPECT_EQ(kDescriptor.base_offset(), 0u);
  EXPECT_EQ(kDescriptor.swizzle_mode(), 1u);
}

TEST(MatrixDescriptorOnCpu, ReachesIntoAPatternBySteppingAlongItsRow) {
  constexpr auto kFirst = simt::MatrixDescriptor::of(0x400, 0, 0x400);
  for (int step = 0; step < 4; ++step) {
    const auto later = simt::MatrixDescriptor::of(0x400 + static_cast<std::uint32_t>(step) * 32, 0, 0x400);
    for (int outer = 0; outer < 64; ++outer)
      for (int inner = 0; inner < 16; ++inner)
        ASSERT_EQ(later.address_of(false, outer, inner), kFirst.address_of(false, outer, 16 * step + inner));
  }
}

TEST(WarpgroupPlacesOnCpu, CoverTheTileOnce) {
  std::vector<int> visits(64 * 128);
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < 64; ++i) {
      const simt::Position position = simt::warpgroup_position_in_d(thread, i);
      ++visits[static_cast<std::size_t>(position.row * 128 + position.column)];
    }
  EXPECT_THAT(visits, testing::Each(1));
  EXPECT_EQ(simt::warpgroup_position_in_d(0, 2).row, 8);
  EXPECT_EQ(simt::warpgroup_position_in_d(33, 4).row, 16);
  EXPECT_EQ(simt::warpgroup_position_in_d(33, 5).column, 11);
}

struct Product {
  TypedArray a, b, c;
  explicit Product(DType dtype)
      : a(eighths(dtype, 64 * 16, 1)), b(eighths(dtype, 16 * 128, 2)), c(TypedArray::unwritten(DType::f32, 64 * 128)) {}

  void multiply(kernels::Stream& stream, OperandStorage a_storage, OperandStorage b_storage,
                ProductFault fault = ProductFault::none) {
    multiply_by_warpgroup(stream, a.dtype(), a_storage, b_storage, a.data(), b.data(), c.as<float>(), fault);
  }
  std::vector<double> expected() const {
    const std::vector<double> as = a.values(), bs = b.values();
    return product(
        64, 128, 0.0, [&](auto row, auto i) { return as[row * 16 + i]; },
        [&](auto i, auto column) { return bs[i * 128 + column]; });
  }
};

TEST(WarpgroupMma, ReadsOperandsWhereTheirDescriptorsSay) {
  // Not transposed, the 64 or 128 outer indices are 8 or 16 patterns; transposed, 1 or 2 by 2.
  const OperandStorage a_storages[] = {{false, 0, 1}, {false, 0, 3}, {true, 0, 1}, {true, 0, 5}};
  const OperandStorage b_storages[] = {{false, 0, 1}, {true, 8, 1}, {true, 1, 2}, {true, 3, 7}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const OperandStorage& a_storage : a_storages)
      for (const OperandStorage& b_storage : b_storages)
        for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
          Product one(dtype);
          one.multiply(stream, a_storage, b_storage);
          finish(stream);
          expect_equal(one.c.values(), one.expected());
        });
}

TEST(WarpgroupMma, ReadsOperandsWithoutASwizzle) {
  const OperandStorage a_storages[] = {
      {false, 8, 1, false}, {false, 1, 2, false}, {true, 9, 1, false}, {true, 1, 5, false}};
  const OperandStorage b_storages[] = {{false, 16, 1, false}, {true, 1, 3, false}, {true, 8, 1}};
  for (DType dtype : {DType::f16, DType::bf16})
    for (const OperandStorage& a_storage : a_storages)
      for (const OperandStorage& b_storage : b_storages)
        for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
          Product one(dtype);
          one.multiply(stream, a_storage, b_storage);
          finish(stream);
          expect_equal(one.c.values(), one.expected());
        });
}

TEST(WarpgroupMmaOnCpu, LandsInTheWait) {
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  Product one(DType::f16);
  one.multiply(*stream, {}, {}, ProductFault::no_wait);
  EXPECT_THAT(one.c.values(), testing::Each(0.0));
}

TEST(WarpgroupMmaOnCpu, ErrorsNameTheMistake) {
  const auto message = [](ProductFault fault) {
    return message_of([&](kernels::Stream& stream) { Product(DType::f16).multiply(stream, {}, {}, fault); });
  };
  EXPECT_THAT(message(ProductFault::no_fence), testing::AllOf(testing::HasSubstr("without a warpgroup_fence"),
                                                              testing::HasSubstr("hopper_kernels.cu:")));
  EXPECT_THAT(message(ProductFault::off_the_pattern), testing::HasSubstr("multiple of 1024 bytes"));
  EXPECT_THAT(message(ProductFault::outside), testing::HasSubstr("outside of the block's dynamic shared memory"));
  EXPECT_THAT(message(ProductFault::half_a_group), testing::HasSubstr("full group of 4"));
}

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
    for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
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

TEST(BulkLoadOnCpu, CountsBytes) {
  EXPECT_THAT(
      message_of_load([](BoxLoad& load) { load.expected_bytes += 16; }),
      testing::AllOf(testing::HasSubstr("deadlock"), testing::HasSubstr("lacks 0 of 1 arrival(s) and 16 byte(s)"),
                     testing::HasSubstr("hopper_kernels.cu:")));
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.expected_bytes -= 16; }),
              testing::HasSubstr("8192 bytes arrive at an mbarrier that waits for 8176"));
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.expected_bytes = 1 << 20; }),
              testing::HasSubstr("expected at most 1048575"));
}

TEST(BulkLoadOnCpu, RequiresAnAlignedAddressInSharedMemory) {
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.skew = 64; }),
              testing::HasSubstr("not a multiple of 128 bytes"));
  EXPECT_THAT(message_of_load([](BoxLoad& load) { load.skew = 2048; }),
              testing::HasSubstr("outside of the block's dynamic shared memory"));
}

TEST(MakeTensorMapOnCpu, RejectsWhatTheCopyEngineCannotRead) {
  EXPECT_THROW(message_of_load([](BoxLoad& load) { ++load.matrix; }), InvalidArgument);
  EXPECT_THROW(message_of_load([](BoxLoad& load) { load.columns = 60; }), InvalidArgument);
  EXPECT_THROW(message_of_load([](BoxLoad& load) { load.rows = 0; }), InvalidArgument);
}

TEST(BarrierPipe, DeliversEveryRoundOnce) {
  for (int rounds : {1, 2, 3, 8})
    for_each_stream([&](kernels::Device&, kernels::Stream& stream) {
      Box box(64 * rounds, 64, 0, 0);
      std::vector<std::uint16_t> to(static_cast<std::size_t>(64 * 64 * rounds), 0);
      copy_through_pipe(stream, box.load.matrix, rounds, to.data());
      finish(stream);
      for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], box.load.matrix[i]) << i << " of " << rounds;
    });
}

TEST(BarrierPipeOnCpu, ErrorsNameTheMistake) {
  const auto message = [](PipeFault fault) {
    Box box(64 * 4, 64, 0, 0);
    std::vector<std::uint16_t> to(64 * 64 * 4);
    return message_of(
        [&](kernels::Stream& stream) { copy_through_pipe(stream, box.load.matrix, 4, to.data(), fault); });
  };
  EXPECT_THAT(message(PipeFault::never_released),
              testing::AllOf(testing::HasSubstr("deadlock"), testing::HasSubstr("wait for an mbarrier"),
                             testing::HasSubstr("lacks"), testing::HasSubstr("hopper_kernels.cu:")));
  EXPECT_THAT(message(PipeFault::filled_twice), testing::HasSubstr("too many arrivals"));
  EXPECT_THAT(message(PipeFault::not_initialised), testing::HasSubstr("not initialised by this block"));
  EXPECT_THAT(message(PipeFault::initialised_twice), testing::HasSubstr("initialised twice"));
}

}  // namespace
}  // namespace gradring::tests
