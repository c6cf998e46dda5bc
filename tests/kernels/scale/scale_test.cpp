// SPDX-License-Identifier: Apache-2.0
#include "kernels/scale/scale.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::scale {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};

TEST(Scale, IsTheReferenceRoundedOnceAlsoInPlace) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (std::size_t elements : kSizes)
      for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
        const float factor = -0.3f;
        const TypedArray x(dtype, random_values(elements, 1));
        TypedArray expected = TypedArray::unwritten(dtype, elements);
        TypedArray actual = expected;
        TypedArray in_place = x;
        reference::run({dtype, x.data(), expected.data(), elements, factor});
        variant.run(stream, {dtype, x.data(), actual.data(), elements, factor});
        variant.run(stream, {dtype, in_place.data(), in_place.data(), elements, factor});
        finish(stream);
        // The reference goes from double to f32 to the type, as the kernel does: the same bits.
        expect_equal(actual.values(), expected.values());
        expect_equal(in_place.values(), expected.values());
      });
}

TEST(Scale, RefusesPartialOverlapNullAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args({DType::f32, data + 1, data, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, data, nullptr, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::u8, data, data, 3}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::scale
