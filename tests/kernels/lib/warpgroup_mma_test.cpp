// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/simt/warpgroup_layout.h"
#include "tests/kernels/lib/exact_product.h"
#include "tests/kernels/lib/hopper_kernels.h"
#include "tests/kernels/lib/message_of.h"
#include "tests/support/expect_close.h"
#include "tests/support/host_streams.h"

namespace gradring::tests {
namespace {

using kernels::DType;

TEST(MatrixDescriptor, HasItsFieldsWherePtxSays) {
  constexpr auto kDescriptor = simt::MatrixDescriptor::of(0x12340, 0x2000, 0x400);
  EXPECT_EQ(kDescriptor.bits, 0x1234ull | 0x200ull << 16 | 0x40ull << 32 | 1ull << 62);
  EXPECT_EQ(kDescriptor.address(), 0x12340u);
  EXPECT_EQ(kDescriptor.leading_bytes(), 0x2000u);
  EXPECT_EQ(kDescriptor.stride_bytes(), 0x400u);
  EXPECT_EQ(kDescriptor.base_offset(), 0u);
  EXPECT_EQ(kDescriptor.swizzle_mode(), 1u);
}

TEST(MatrixDescriptor, ReachesIntoAPatternBySteppingAlongItsRow) {
  constexpr auto kFirst = simt::MatrixDescriptor::of(0x400, 0, 0x400);
  for (int step = 0; step < 4; ++step) {
    const auto later = simt::MatrixDescriptor::of(0x400 + static_cast<std::uint32_t>(step) * 32, 0, 0x400);
    for (int outer = 0; outer < 64; ++outer)
      for (int inner = 0; inner < 16; ++inner)
        ASSERT_EQ(later.address_of(false, outer, inner), kFirst.address_of(false, outer, 16 * step + inner));
  }
}

TEST(WarpgroupPlaces, CoverTheTileOnce) {
  std::vector<int> visits(64 * 128);
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < 64; ++i) {
      const simt::Place place = simt::warpgroup_place_in_d(thread, i);
      ++visits[static_cast<std::size_t>(place.row * 128 + place.column)];
    }
  EXPECT_THAT(visits, testing::Each(1));
  EXPECT_EQ(simt::warpgroup_place_in_d(0, 2).row, 8);
  EXPECT_EQ(simt::warpgroup_place_in_d(33, 4).row, 16);
  EXPECT_EQ(simt::warpgroup_place_in_d(33, 5).column, 11);
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
        for_each_host_stream([&](kernels::Device&, kernels::Stream& stream) {
          Product one(dtype);
          one.multiply(stream, a_storage, b_storage);
          finish(stream);
          expect_equal(one.c.values(), one.expected());
        });
}

TEST(WarpgroupMma, LandsInTheWait) {
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  Product one(DType::f16);
  one.multiply(*stream, {}, {}, ProductFault::no_wait);
  EXPECT_THAT(one.c.values(), testing::Each(0.0));
}

TEST(WarpgroupMma, SaysWhatIsWrong) {
  const auto message = [](ProductFault fault) {
    return message_of([&](kernels::Stream& stream) { Product(DType::f16).multiply(stream, {}, {}, fault); });
  };
  EXPECT_THAT(message(ProductFault::no_fence), testing::AllOf(testing::HasSubstr("without a warpgroup_fence"),
                                                              testing::HasSubstr("hopper_kernels.cu:")));
  EXPECT_THAT(message(ProductFault::off_the_pattern), testing::HasSubstr("multiple of 1024 bytes"));
  EXPECT_THAT(message(ProductFault::outside), testing::HasSubstr("outside of the block's dynamic shared memory"));
  EXPECT_THAT(message(ProductFault::half_a_group), testing::HasSubstr("full group of 4"));
}

}  // namespace
}  // namespace gradring::tests
