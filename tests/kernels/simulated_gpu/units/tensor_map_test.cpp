// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/tensor_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr unsigned kUint8 = 0;
constexpr unsigned kUint16 = 1;
constexpr unsigned kFloat16 = 6;
constexpr unsigned kFloat64 = 8;
constexpr unsigned kBfloat16 = 9;
constexpr unsigned kTf32 = 11;
constexpr unsigned kTf32Ftz = 12;

/// Arguments that are valid: a matrix of 256 x 100 elements of f16, a box of 64 x 32, swizzled by 128 bytes.
struct EncodeCase {
  alignas(64) std::array<std::byte, kTensorMapBytes + 64> map{};
  std::array<std::uint64_t, 5> sizes = {256, 100, 8, 4, 2};
  std::array<std::uint64_t, 4> strides = {512, 51200, 409600, 1638400};
  std::array<std::uint32_t, 5> box = {64, 32, 2, 2, 1};
  std::array<std::uint32_t, 5> steps = {1, 1, 1, 1, 1};
  TensorMapArguments arguments{.tensor_map = map.data(),
                               .data_type = kFloat16,
                               .rank = 2,
                               .address = 0x7F0000000100,
                               .sizes = sizes.data(),
                               .strides_bytes = strides.data(),
                               .box = box.data(),
                               .element_strides = steps.data(),
                               .interleave = 0,
                               .swizzle = 3,
                               .promotion = 2,
                               .fill = 0};

  EncodeCase() = default;
  EncodeCase(const EncodeCase&) = delete;
  EncodeCase& operator=(const EncodeCase&) = delete;
};

/// As it does for a defect of drivers up to 13.1 (cute/atom/copy_traits_sm90_tma.hpp).
TEST(SimulatedTensorMap, StaysValidWhereCutlassClearsABit) {
  EncodeCase valid;
  valid.arguments.address = 0x7F00FFFFFF00;
  ASSERT_EQ(encode_tensor_map(valid.arguments).code, TensorMapResult::kSuccess);
  reinterpret_cast<std::uint64_t*>(valid.map.data())[1] &= ~(std::uint64_t{1} << 21);
  EXPECT_EQ(TensorMap::decode(valid.map.data()).address, 0x7F00FFFFFF00U);
}

TEST(SimulatedTensorMap, MovesTf32AsItIs) {
  EncodeCase valid;
  valid.arguments.data_type = kTf32;
  valid.box[0] = 32;
  ASSERT_EQ(encode_tensor_map(valid.arguments).code, TensorMapResult::kSuccess);
  EXPECT_EQ(TensorMap::decode(valid.map.data()).element_bytes, 4U);
}

TEST(SimulatedTensorMap, RestoresArguments) {
  EncodeCase valid;
  valid.steps = {7, 3, 1, 1, 1};  // the first is ignored
  ASSERT_EQ(encode_tensor_map(valid.arguments).code, TensorMapResult::kSuccess);
  EXPECT_EQ(valid.map[kTensorMapBytes], std::byte{0});
  const TensorMap map = TensorMap::decode(valid.map.data());
  EXPECT_EQ(map.address, 0x7F0000000100U);
  EXPECT_EQ(map.element_bytes, 2U);
  EXPECT_EQ(map.rank, 2U);
  EXPECT_THAT(map.sizes, testing::ElementsAre(256, 100, 0, 0, 0));
  EXPECT_THAT(map.strides_bytes, testing::ElementsAre(2, 512, 0, 0, 0));
  EXPECT_THAT(map.counts, testing::ElementsAre(64, 11, 0, 0, 0));  // 32 / 3, rounded up
  EXPECT_THAT(map.steps, testing::ElementsAre(1, 3, 0, 0, 0));
  EXPECT_EQ(map.swizzle, Swizzle::bytes_128);
  EXPECT_EQ(map.row_bytes(), 128U);
  EXPECT_EQ(map.box_bytes(), 128U * 11);
}

TEST(SimulatedTensorMap, AcceptsWhatRulesAllow) {
  const std::function<void(EncodeCase&)> changes[] = {
      [](EncodeCase& c) { c.arguments.rank = 1; },
      [](EncodeCase& c) { c.arguments.rank = 1, c.arguments.strides_bytes = nullptr; },
      [](EncodeCase& c) { c.arguments.rank = 5; },
      [](EncodeCase& c) { c.sizes[1] = std::uint64_t{1} << 32; },
      [](EncodeCase& c) { c.strides[0] = (std::uint64_t{1} << 40) - 16; },
      [](EncodeCase& c) { c.box[1] = 256; },
      [](EncodeCase& c) { c.steps[1] = 8; },
      [](EncodeCase& c) { c.steps[0] = 0; },  // "the first element of this array is ignored"
      [](EncodeCase& c) { c.box[0] = 256, c.arguments.swizzle = 0; },
      [](EncodeCase& c) { c.box[0] = 8; },
      [](EncodeCase& c) { c.arguments.data_type = kBfloat16, c.arguments.fill = 1; },
      [](EncodeCase& c) { c.arguments.data_type = kFloat64, c.box[0] = 16; },
      [](EncodeCase& c) { c.arguments.data_type = kUint8, c.box[0] = 128; },
      [](EncodeCase& c) { c.arguments.interleave = 1, c.arguments.rank = 3; },
      [](EncodeCase& c) { c.arguments.interleave = 2, c.arguments.rank = 3, c.arguments.swizzle = 1; },
  };
  for (const auto& change : changes) {
    EncodeCase changed;
    change(changed);
    const TensorMapResult result = encode_tensor_map(changed.arguments);
    EXPECT_EQ(result.code, TensorMapResult::kSuccess) << &change - changes << ": " << result.reason;
  }
}

// The rules of cuTensorMapEncodeTiled in cuda.h (CUDA 13.0), each broken once.
TEST(SimulatedTensorMap, RejectsWhatRulesForbid) {
  struct Rule {
    std::function<void(EncodeCase&)> breaks;
    const char* reason;
  };
  const Rule rules[] = {
      {[](EncodeCase& c) { c.arguments.tensor_map = c.map.data() + 32; }, "tensorMap is"},
      {[](EncodeCase& c) { c.arguments.tensor_map = nullptr; }, "null"},
      {[](EncodeCase& c) { c.arguments.sizes = nullptr; }, "null"},
      {[](EncodeCase& c) { c.arguments.strides_bytes = nullptr; }, "null"},
      {[](EncodeCase& c) { c.arguments.data_type = 13; }, "tensorDataType is 13"},
      {[](EncodeCase& c) { c.arguments.rank = 0; }, "tensorRank is 0"},
      {[](EncodeCase& c) { c.arguments.rank = 6; }, "tensorRank is 6"},
      {[](EncodeCase& c) { c.arguments.interleave = 1; }, "tensorRank is 2: at least 3"},
      {[](EncodeCase& c) { c.arguments.interleave = 3; }, "interleave is 3"},
      {[](EncodeCase& c) { c.arguments.interleave = 2, c.arguments.rank = 3; }, "swizzle is 3: 32 bytes"},
      {[](EncodeCase& c) {
         c.arguments.interleave = 2, c.arguments.rank = 3, c.arguments.swizzle = 1, c.arguments.address += 16;
       },
       "not a multiple of 32"},
      {[](EncodeCase& c) { c.arguments.address += 8; }, "globalAddress is 139637976727816: not a multiple of 16"},
      {[](EncodeCase& c) { c.sizes[1] = 0; }, "globalDim[1] is 0"},
      {[](EncodeCase& c) { c.sizes[0] = (std::uint64_t{1} << 32) + 1; }, "globalDim[0] is 4294967297"},
      {[](EncodeCase& c) { c.strides[0] = 520; }, "globalStrides[0] is 520: not a multiple of 16"},
      {[](EncodeCase& c) { c.strides[0] = std::uint64_t{1} << 40; }, "globalStrides[0] is 1099511627776: less"},
      {[](EncodeCase& c) { c.arguments.rank = 3, c.strides[1] = 8; }, "globalStrides[1] is 8"},
      {[](EncodeCase& c) { c.box[1] = 0; }, "boxDim[1] is 0"},
      {[](EncodeCase& c) { c.box[1] = 257; }, "boxDim[1] is 257"},
      {[](EncodeCase& c) { c.box[0] = 60; }, "boxDim[0] is 60: 120 bytes, which is not a multiple of 16"},
      {[](EncodeCase& c) { c.box[0] = 72; }, "boxDim[0] is 72: 144 bytes, more than the 128 of the swizzle"},
      {[](EncodeCase& c) { c.arguments.swizzle = 2; }, "128 bytes, more than the 64"},
      {[](EncodeCase& c) { c.arguments.swizzle = 1, c.box[0] = 24; }, "48 bytes, more than the 32"},
      {[](EncodeCase& c) { c.arguments.swizzle = 4; }, "swizzle is 4"},
      {[](EncodeCase& c) { c.steps[1] = 0; }, "elementStrides[1] is 0"},
      {[](EncodeCase& c) { c.steps[1] = 9; }, "elementStrides[1] is 9"},
      {[](EncodeCase& c) { c.arguments.promotion = 4; }, "l2Promotion is 4"},
      {[](EncodeCase& c) { c.arguments.fill = 2; }, "oobFill is 2"},
      {[](EncodeCase& c) { c.arguments.fill = 1, c.arguments.data_type = kUint16; }, "oobFill is 1"},
  };
  for (const Rule& rule : rules) {
    EncodeCase broken;
    rule.breaks(broken);
    const TensorMapResult result = encode_tensor_map(broken.arguments);
    EXPECT_EQ(result.code, TensorMapResult::kInvalidValue) << rule.reason;
    EXPECT_THAT(result.reason, HasSubstr(rule.reason));
    for (const std::byte byte : broken.map) ASSERT_EQ(byte, std::byte{0});
  }
}

TEST(SimulatedTensorMap, RejectsBytesThatAreNoMap) {
  EncodeCase valid;
  EXPECT_THAT([&] { TensorMap::decode(valid.map.data()); }, ThrowsMessage<Fault>(HasSubstr("__grid_constant__")));
  ASSERT_EQ(encode_tensor_map(valid.arguments).code, 0);
  TensorMap::decode(valid.map.data());
  for (const std::size_t byte : {0, 9, 60, 100, 127}) {
    valid.map[byte] ^= std::byte{4};
    EXPECT_THROW(TensorMap::decode(valid.map.data()), Fault) << byte;
    valid.map[byte] ^= std::byte{4};
  }
}

TEST(SimulatedTensorMap, NamesWhatIsNotSimulated) {
  const auto expect = [](const std::function<void(EncodeCase&)>& change, const char* message) {
    EncodeCase changed;
    change(changed);
    ASSERT_EQ(encode_tensor_map(changed.arguments).code, 0) << message;
    EXPECT_THAT([&] { TensorMap::decode(changed.map.data()); }, ThrowsMessage<Fault>(HasSubstr(message)));
  };
  expect([](EncodeCase& c) { c.arguments.interleave = 1, c.arguments.rank = 3; }, "interleaved");
  expect([](EncodeCase& c) { c.arguments.fill = 1; }, "NaN");
  expect([](EncodeCase& c) { c.arguments.data_type = kTf32Ftz, c.box[0] = 32; }, "TFLOAT32_FTZ");
  expect([](EncodeCase& c) { c.box[0] = 32; }, "rows of 64 bytes in a swizzle of 128 bytes");
}

}  // namespace
}  // namespace gradring::simulated_gpu
