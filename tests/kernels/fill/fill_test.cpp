// SPDX-License-Identifier: Apache-2.0
#include "kernels/fill/fill.h"

#include <gtest/gtest.h>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::fill {
namespace {

using namespace gradring::tests;

TEST(Fill, SetsEveryElementOfEveryType) {
  const struct {
    DType dtype;
    double value;
  } cases[] = {{DType::f32, -1.5}, {DType::f16, 0.1},    {DType::bf16, 3e38},
               {DType::i32, -7},   {DType::i64, 0x1p40}, {DType::u8, 255}};
  for (const auto& c : cases)
    for (std::size_t elements : {0, 1, 31, 33, 1023, 20001})
      for_each_variant(variants(), c.dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray expected = TypedArray::unwritten(c.dtype, elements);
        TypedArray actual = TypedArray::unwritten(c.dtype, elements);
        reference::run({.dtype = c.dtype, .y = expected.data(), .elements = elements, .value = c.value});
        variant.run(stream, {.dtype = c.dtype, .y = actual.data(), .elements = elements, .value = c.value});
        finish(stream);
        expect_equal(actual.values(), expected.values());
      });
}

TEST(Fill, RefusesWhatTheTypeCannotHold) {
  std::int64_t word = 0;
  EXPECT_THROW(reference::run({.dtype = DType::u8, .y = &word, .elements = 1, .value = 256}), InvalidArgument);
  EXPECT_THROW(reference::run({.dtype = DType::i32, .y = &word, .elements = 1, .value = 0.5}), InvalidArgument);
  EXPECT_THROW(reference::run({.dtype = DType::f32, .y = nullptr, .elements = 1, .value = 0}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::fill
