// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/lib/exact_product.h"
#include "tests/kernels/lib/message_of.h"
#include "tests/kernels/lib/tensor_core_kernels.h"
#include "tests/support/expect_close.h"
#include "tests/support/host_streams.h"
#include "tests/support/values.h"

namespace gradring::tests {
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
  for (int matrices : {2, 4})
    for (bool transpose : {false, true})
      for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
        LoadCase c;
        c.load.matrices = matrices;
        c.load.transpose = transpose;
        load_matrices(stream, c.load);
        finish(stream);
        for (int lane = 0; lane < 32; ++lane)
          for (int i = 0; i < matrices; ++i) {
            const int outer = lane / 4, inner = lane % 4 * 2;
            const std::uint32_t expected = transpose ? c.word(i, inner, outer) | c.word(i, inner + 1, outer) << 16
                                                     : c.word(i, outer, inner) | c.word(i, outer, inner + 1) << 16;
            ASSERT_EQ(c.registers[static_cast<std::size_t>(lane * matrices + i)], expected)
                << "lane " << lane << ", matrix " << i << " of " << matrices << (transpose ? ", transposed" : "");
          }
      });
}

TEST(LoadMatrices, SeeWhatAnotherLaneWroteBeforeTheBarrier) {
  for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
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

TEST(LoadMatrices, RefuseMisalignedRowsAndLanesThatAreMissing) {
  LoadCase misaligned;
  misaligned.load.skew = 8;
  EXPECT_THAT(message_of_load(misaligned), testing::AllOf(testing::HasSubstr("not a multiple of 16 bytes"),
                                                          testing::HasSubstr("tensor_core_kernels.cu:")));
  LoadCase incomplete;
  incomplete.load.everybody = false;
  EXPECT_THAT(message_of_load(incomplete), testing::HasSubstr("tensor_core_kernels.cu:"));
}

TEST(Mma, MultipliesTheElementsAtTheirDocumentedPlaces) {
  for (DType dtype : {DType::f16, DType::bf16})
    for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
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

TEST(Mma, TakesWhatLdmatrixLoadsHoweverItIsStored) {
  for (DType dtype : {DType::f16, DType::bf16})
    for (bool a_by_inner : {false, true})
      for (bool b_by_column : {false, true})
        for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
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

}  // namespace
}  // namespace gradring::tests
