// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/dtype.h"

#include <gtest/gtest.h>

namespace gradring::kernels {
namespace {

constexpr DType kAll[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

TEST(DType, NamesAndParsesEachType) {
  for (DType dtype : kAll) EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  for (const char* wrong : {"", "f3", "float", "F32", "f32 "}) EXPECT_EQ(parse_dtype(wrong), std::nullopt) << wrong;
}

template <class T>
void expect_size(std::size_t bytes) {
  EXPECT_EQ(size_of(dtype_of<T>), bytes);
  EXPECT_EQ(sizeof(T), bytes);
}

TEST(DType, HasTheSizeOfItsHostType) {
  expect_size<float>(4);
  expect_size<Half>(2);
  expect_size<BFloat16>(2);
  expect_size<std::int32_t>(4);
  expect_size<std::int64_t>(8);
  expect_size<std::uint8_t>(1);
}

}  // namespace
}  // namespace gradring::kernels
