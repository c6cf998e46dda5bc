// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/bias/bias.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/partial_sums.h"
#include "tests/support/values.h"

namespace gradring::kernels::relu {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

TEST(Relu, IsExactForwardAndBackwardAlsoInPlace) {
  for (DType dtype : kTypes)
    for (std::size_t n : kSizes)
      for_each_variant(kernel_set().relu, dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(n, 1));
        const TypedArray dy(dtype, random_values(n, 2));
        TypedArray y = TypedArray::unwritten(dtype, n);
        TypedArray dx = y;
        reference_forward({dtype, x.data(), y.data(), n});
        reference_backward({dtype, y.data(), dy.data(), dx.data(), n});
        TypedArray actual_y = TypedArray::unwritten(dtype, n);
        TypedArray actual_dx = actual_y;
        TypedArray in_place_y = x;
        TypedArray in_place_dx = dy;
        variant.forward(stream, {dtype, x.data(), actual_y.data(), n});
        variant.forward(stream, {dtype, in_place_y.data(), in_place_y.data(), n});
        variant.backward(stream, {dtype, y.data(), dy.data(), actual_dx.data(), n});
        variant.backward(stream, {dtype, y.data(), in_place_dx.data(), in_place_dx.data(), n});
        finish(stream);
        expect_equal(actual_y.values(), y.values());
        expect_equal(in_place_y.values(), y.values());
        expect_equal(actual_dx.values(), dx.values());
        expect_equal(in_place_dx.values(), dx.values());
      });
}

TEST(Relu, KeepsNaNAndInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : kTypes)
    for_each_variant(kernel_set().relu, dtype, [&](const Variant& variant, Stream& stream) {
      TypedArray y(dtype, std::vector<double>{nan, infinity, -infinity, -0.0, 1});
      TypedArray dx(dtype, std::vector<double>{1, 2, 3, 4, 5});
      variant.forward(stream, {dtype, y.data(), y.data(), 5});
      variant.backward(stream, {dtype, y.data(), dx.data(), dx.data(), 5});
      finish(stream);
      expect_equal(y.values(), std::vector<double>{nan, infinity, 0, 0, 1});
      expect_equal(dx.values(), std::vector<double>{0, 2, 0, 0, 5});
    });
}

TEST(Relu, ReferenceGradientMatchesFiniteDifferences) {
  const TypedArray x(DType::f32, distinct_values(40, 3, 1.0 / 64));
  const TypedArray dy(DType::f32, random_values(40, 4));
  const std::vector<double> weights = dy.values();
  TypedArray y = TypedArray::unwritten(DType::f32, 40);
  const auto loss = [&](std::span<const double> at) {
    const TypedArray point(DType::f32, at);
    reference_forward({DType::f32, point.data(), y.data(), 40});
    const std::vector<double> values = y.values();
    return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  };
  TypedArray dx = y;
  reference_forward({DType::f32, x.data(), y.data(), 40});
  reference_backward({DType::f32, y.data(), dy.data(), dx.data(), 40});
  expect_gradient(loss, x.values(), dx.values(), 1.0 / 128, 1e-5);
}

TEST(Relu, RejectsNullPartialOverlapAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args(ForwardArgs{DType::f32, nullptr, data, 1}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{DType::f32, data, data + 1, 2}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{DType::i32, data, data, 2}), InvalidArgument);
  EXPECT_THROW(check_args(BackwardArgs{DType::f32, data, nullptr, data, 2}), InvalidArgument);
  EXPECT_THROW(check_args(BackwardArgs{DType::f32, data, data, data + 1, 2}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::relu

namespace gradring::kernels::bias {
namespace {

using namespace gradring::tests;

struct Case {
  std::int64_t rows, channels;
};
constexpr Case kCases[] = {{0, 5},   {5, 0},    {1, 1},  {31, 33},          {33, 31},  {1023, 7},
                           {7, 129}, {300, 32}, {2, 10}, {2 * 26 * 26, 32}, {4099, 16}};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

TEST(Bias, AddsWithOneRoundingAlsoInPlace) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases)
      for_each_variant(kernel_set().bias, dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(size(c.rows * c.channels), 1));
        const TypedArray bias(dtype, random_values(size(c.channels), 2));
        TypedArray expected = TypedArray::unwritten(dtype, x.elements());
        TypedArray actual = expected;
        TypedArray in_place = x;
        reference_add({dtype, c.rows, c.channels, x.data(), bias.data(), expected.data()});
        variant.add(stream, {dtype, c.rows, c.channels, x.data(), bias.data(), actual.data()});
        variant.add(stream, {dtype, c.rows, c.channels, in_place.data(), bias.data(), in_place.data()});
        finish(stream);
        expect_equal(actual.values(), expected.values());
        expect_equal(in_place.values(), expected.values());
      });
}

TEST(Bias, SumsTheGradientWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases)
      for (bool accumulate : {false, true})
        for_each_variant(kernel_set().bias, dtype, [&](const Variant& variant, Stream& stream) {
          const TypedArray dy(dtype, random_values(size(c.rows * c.channels), 3));
          TypedArray expected(DType::f32, random_values(size(c.channels), 4));
          TypedArray actual = expected;
          reference_grad({dtype, c.rows, c.channels, dy.data(), expected.as<float>(), accumulate});
          variant.grad(stream, {dtype, c.rows, c.channels, dy.data(), actual.as<float>(), accumulate});
          finish(stream);
          // The contract's bound, with |dy| and |db| at most 1.
          const double bound = (static_cast<double>(c.rows) / 256 + 258) * 0x1p-24 * static_cast<double>(c.rows + 1);
          expect_close(actual.values(), expected.values(), [&](std::size_t) { return bound; });
        });
}

TEST(Bias, MasksTheGradientByAReluAlsoInPlace) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases)
      for_each_variant(kernel_set().bias, dtype, [&](const Variant& variant, Stream& stream) {
        const std::size_t elements = size(c.rows * c.channels);
        const TypedArray dy(dtype, random_values(elements, 3));
        std::vector<double> outputs = random_values(elements, 6);
        for (double& output : outputs) output = std::max(output, 0.0);
        if (elements > 2) outputs[2] = std::nan("");
        const TypedArray y(dtype, outputs);
        TypedArray workspace = TypedArray::unwritten(DType::f32, grad_workspace_bytes(c.channels) / sizeof(float));
        TypedArray expected_dx = TypedArray::unwritten(dtype, elements);
        TypedArray expected_db = TypedArray::unwritten(DType::f32, size(c.channels));
        TypedArray dx = expected_dx, db = expected_db, in_place = dy, db_in_place = expected_db;
        GradArgs args{.dtype = dtype,
                      .rows = c.rows,
                      .channels = c.channels,
                      .dy = dy.data(),
                      .db = expected_db.as<float>(),
                      .workspace = workspace.data(),
                      .y = y.data(),
                      .dx = expected_dx.data()};
        reference_grad(args);
        args.db = db.as<float>();
        args.dx = dx.data();
        variant.grad(stream, args);
        args.db = db_in_place.as<float>();
        args.dy = in_place.data();
        args.dx = in_place.data();
        variant.grad(stream, args);
        finish(stream);
        const double bound = (static_cast<double>(c.rows) / 256 + 258) * 0x1p-24 * static_cast<double>(c.rows + 1);
        expect_equal(dx.values(), expected_dx.values());
        expect_equal(in_place.values(), expected_dx.values());
        expect_close(db.values(), expected_db.values(), [&](std::size_t) { return bound; });
        expect_equal(db_in_place.values(), db.values());
      });
}

TEST(Bias, SplitsRowsWithAWorkspaceAndLeavesPartialSums) {
  for (DType dtype : kTypes)
    for (const Case& c : {Case{700, 8}, Case{1500, 33}, Case{9000, 1}, Case{0, 5}})
      for_each_variant(kernel_set().bias, dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray dy(dtype, random_values(size(c.rows * c.channels), 3));
        std::vector<float> workspace(grad_workspace_bytes(c.channels) / sizeof(float), std::nanf(""));
        const double bound = (static_cast<double>(c.rows) / 256 + 258) * 0x1p-24 * static_cast<double>(c.rows + 1);
        const auto expect_gradient_of = [&](bool accumulate, PartialSums* left) {
          TypedArray expected(DType::f32, random_values(size(c.channels), 4));
          TypedArray actual = expected;
          reference_grad({dtype, c.rows, c.channels, dy.data(), expected.as<float>(), accumulate});
          variant.grad(stream,
                       {dtype, c.rows, c.channels, dy.data(), actual.as<float>(), accumulate, workspace.data(), left});
          finish(stream);
          if (left) add_up(*left);
          expect_close(actual.values(), expected.values(), [&](std::size_t) { return bound; });
        };
        PartialSums left;
        expect_gradient_of(false, nullptr);
        expect_gradient_of(true, nullptr);
        expect_gradient_of(false, &left);
        if (variant.name == "blocks" && c.rows == 9000) {
          EXPECT_EQ(left.size(), 1u);
        }
      });
}

TEST(Bias, ReferenceGradientMatchesFiniteDifferences) {
  const std::int64_t rows = 9;
  const std::int64_t channels = 5;
  const TypedArray x(DType::f32, random_values(45, 5));
  const TypedArray dy(DType::f32, random_values(45, 6));
  const std::vector<double> weights = dy.values();
  const auto loss = [&](std::span<const double> b) {
    const TypedArray bias(DType::f32, b);
    TypedArray y = TypedArray::unwritten(DType::f32, 45);
    reference_add({DType::f32, rows, channels, x.data(), bias.data(), y.data()});
    const std::vector<double> values = y.values();
    return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  };
  TypedArray db = TypedArray::unwritten(DType::f32, 5);
  reference_grad({DType::f32, rows, channels, dy.data(), db.as<float>(), false});
  expect_gradient(loss, random_values(5, 7), db.values(), 0.5, 1e-5);
}

TEST(Bias, RejectsNegativeExtentsNullAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args(AddArgs{DType::f32, -1, 2, data, data, data}), InvalidArgument);
  EXPECT_THROW(check_args(AddArgs{DType::f32, 1, 2, data, nullptr, data + 2}), InvalidArgument);
  EXPECT_THROW(check_args(AddArgs{DType::u8, 1, 2, data, data, data + 2}), InvalidArgument);
  EXPECT_THROW(check_args(AddArgs{DType::f32, 1, 2, data, data, data + 1}), InvalidArgument);
  EXPECT_THROW(check_args(GradArgs{DType::f32, 1, -2, data, data, false}), InvalidArgument);
  EXPECT_THROW(check_args(GradArgs{DType::f32, 1, 2, data, nullptr, false}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::bias
