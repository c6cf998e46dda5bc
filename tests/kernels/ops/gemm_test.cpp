// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/lib/variant.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/dtype.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/partial_sums.h"
#include "tests/support/values.h"

namespace gradring::kernels::gemm {
namespace {

using namespace gradring::tests;

struct Extents {
  std::int64_t m, n, k;
};
constexpr Extents kCases[] = {{0, 3, 4},    {3, 0, 4},    {3, 4, 0},    {1, 1, 1},    {31, 33, 32}, {33, 31, 7},
                              {2, 10, 256}, {256, 10, 2}, {2, 256, 64}, {64, 64, 64}, {129, 65, 1}, {136, 72, 40}};
constexpr Extents kWideCases[] = {
    {72, 136, 200}};  // rows of whole 16-byte vectors: tiles, and more k-tiles than stages
constexpr Extents kLongCases[] = {{5, 1023, 3}, {3, 5, 1023}};
constexpr Extents kLongAndThin = {8, 16, 392};  // so few tiles that K is split

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

std::size_t largest_workspace() {
  std::size_t bytes = 0;
  for (const Variant& variant : kernel_set().gemm) bytes = std::max(bytes, variant.workspace_bytes);
  return bytes;
}

/// Inputs in [-1, 1) and what the reference makes of them.
struct Case {
  Args args;
  TypedArray a, b;
  TypedArray start;  ///< C before
  TypedArray c;

  Case(const Extents& e, DType dtype, DType c_dtype, bool transpose_a, bool transpose_b, bool accumulate)
      : args{.dtype = dtype,
             .c_dtype = c_dtype,
             .m = e.m,
             .n = e.n,
             .k = e.k,
             .transpose_a = transpose_a,
             .transpose_b = transpose_b,
             .accumulate = accumulate},
        a(dtype, random_values(size(e.m * e.k), 1)),
        b(dtype, random_values(size(e.k * e.n), 2)),
        start(c_dtype, random_values(size(e.m * e.n), 3)),
        c(start) {
    reference_run(with_c(c));
  }

  Args with_c(TypedArray& to) const {
    static std::vector<std::byte> workspace(largest_workspace() + 64);
    Args filled = args;
    filled.workspace = workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
    filled.a = a.data();
    filled.b = b.data();
    filled.c = to.data();
    return filled;
  }
};

void expect_product(const Case& expected, const TypedArray& actual) {
  const std::vector<double> truth = expected.c.values();
  const auto terms = static_cast<double>(expected.args.k + 1);
  const double sum_error = terms * terms * 0x1p-24;
  expect_close(actual.values(), truth, [&](std::size_t i) {
    return sum_error + 2 * rounding(actual.dtype(), std::fabs(truth[i]) + sum_error);
  });
}

void run_and_expect(const Case& expected, const Variant& variant, Stream& stream) {
  TypedArray c = expected.start;
  variant.run(stream, expected.with_c(c));
  finish(stream);
  expect_product(expected, c);
  if (expected.args.c_dtype != DType::f32 || expected.args.accumulate) return;
  PartialSums left;
  c = TypedArray::unwritten(DType::f32, c.elements());
  Args args = expected.with_c(c);
  args.partial_sums = &left;
  variant.run(stream, args);
  finish(stream);
  add_up(left);
  expect_product(expected, c);
}

/// Every way to store the factors, in turn added to f32 and written in the type of the factors.
void add_all_storages(const Extents& extents, DType dtype, std::vector<Case>& cases) {
  for (int flags = 0; flags < 4; ++flags) {
    const bool accumulate = (extents.m + flags) % 2 == 0;
    cases.emplace_back(extents, dtype, accumulate ? DType::f32 : dtype, flags & 1, flags & 2, accumulate);
  }
}

TEST(Gemm, StaysWithinItsBound) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    std::vector<Case> cases;
    for (const Extents& extents : kCases) add_all_storages(extents, dtype, cases);
    for (const Extents& extents : kWideCases)
      if (dtype != DType::f32) add_all_storages(extents, dtype, cases);
    for (const Extents& extents : kLongCases)
      if (dtype == DType::f32) add_all_storages(extents, dtype, cases);
    for_each_variant(kernel_set().gemm, dtype, [&](const Variant& variant, Stream& stream) {
      for (const Case& expected : cases) {
        const Args& args = expected.args;
        SCOPED_TRACE(testing::Message() << args.m << "x" << args.n << "x" << args.k
                                        << ", transposed: " << args.transpose_a << args.transpose_b);
        run_and_expect(expected, variant, stream);
      }
    });
  }
}

// A variant needs a workspace for slices of K alone.
TEST(Gemm, LeavesSlicesOfALongProductToItsCaller) {
  for (DType dtype : {DType::f32, DType::f16}) {
    const Case complete({64, 64, 4096}, dtype, DType::f32, false, false, false);
    const Case accumulating({64, 64, 4096}, dtype, DType::f32, false, false, true);
    for_each_variant(kernel_set().gemm, dtype, [&](const Variant& variant, Stream& stream) {
      for (const Case* product : {&complete, &accumulating}) {
        TypedArray c = product->start;
        PartialSums left;
        Args args = product->with_c(c);
        args.partial_sums = &left;
        variant.run(stream, args);
        finish(stream);
        EXPECT_EQ(left.size(), variant.workspace_bytes > 0 && !args.accumulate ? 1u : 0u);
        for (const PartialSum& sum : left) {
          EXPECT_GT(sum.count, 1);
          EXPECT_EQ(c.values(), product->start.values()) << "what is left is not written";
        }
        add_up(left);
        expect_product(*product, c);
      }
    });
  }
}

// Several tiles in each direction, K that no k-tile divides, long sums, thin products.
// docs/results/simulated_gpu_speed.md times a simulated GPU with these.
TEST(Gemm, StaysWithinItsBoundOverManyTiles) {
  constexpr Extents kManyTiles[] = {{136, 72, 200}, {16, 264, 72}, {33, 19, 45}, {256, 128, 1024}, {64, 64, 64}};
  for (DType dtype : {DType::f16, DType::bf16}) {
    std::vector<Case> cases;
    for (const Extents& extents : kManyTiles) add_all_storages(extents, dtype, cases);
    for_each_variant(kernel_set().gemm, dtype, [&](const Variant& variant, Stream& stream) {
      for (const Case& expected : cases) {
        SCOPED_TRACE(testing::Message() << expected.args.m << "x" << expected.args.n << "x" << expected.args.k);
        run_and_expect(expected, variant, stream);
      }
    });
  }
}

// The step wgmma has 128 x 128 tiles for C that has enough of them to fill a device.
TEST(Gemm, MultipliesInLargeTilesWhereTheyFillADevice) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    std::vector<Case> cases;
    add_all_storages({1800, 1128, 72}, dtype, cases);
    for_each_variant(kernel_set().gemm, dtype, [&](const Variant& variant, Stream& stream) {
      if (variant.name != std::string_view("wgmma")) return;
      for (const Case& expected : cases) run_and_expect(expected, variant, stream);
    });
  }
}

TEST(Gemm, WritesAndAddsToBothTypesOfC) {
  for (DType dtype : {DType::f16, DType::bf16})
    for (bool accumulate : {false, true})
      for (const Extents& extents : {kLongAndThin, Extents{5, 7, 9}}) {
        const Case expected(extents, dtype, accumulate ? dtype : DType::f32, false, true, accumulate);
        for_each_variant(kernel_set().gemm, dtype,
                         [&](const Variant& variant, Stream& stream) { run_and_expect(expected, variant, stream); });
      }
}

// Shapes with and without whole vectors, with and without slices of K; NaN and infinities in A reach C and no others.
TEST(Gemm, AddsBiasAndAppliesRelu) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const Extents& extents : {kLongAndThin, Extents{5, 7, 9}, Extents{72, 136, 40}, Extents{3, 4, 0}})
      for (int flags = 0; flags < 4; ++flags) {
        Case c(extents, dtype, flags == 3 ? DType::f32 : dtype, flags & 1, true, flags == 3);
        const TypedArray bias(dtype, random_values(size(extents.n), 4));
        c.args.bias = flags == 2 ? nullptr : bias.data();
        c.args.relu = flags > 0;
        c.c = c.start;
        reference_run(c.with_c(c.c));
        SCOPED_TRACE(testing::Message() << extents.m << "x" << extents.n << "x" << extents.k << ", flags " << flags);
        for_each_variant(kernel_set().gemm, dtype,
                         [&](const Variant& variant, Stream& stream) { run_and_expect(c, variant, stream); });
      }
}

TEST(Gemm, ReluKeepsNaNAndInfinity) {
  Case c({2, 8, 8}, DType::f16, DType::f16, false, false, false);
  std::vector<double> b(64, 1.0);
  b[0] = NAN, b[1] = INFINITY, b[2] = -INFINITY;
  c.a = TypedArray(DType::f16, std::vector<double>(16, 1.0));
  c.b = TypedArray(DType::f16, b);
  c.args.relu = true;
  for_each_variant(kernel_set().gemm, DType::f16, [&](const Variant& variant, Stream& stream) {
    TypedArray result = c.start;
    variant.run(stream, c.with_c(result));
    finish(stream);
    const std::vector<double> values = result.values();
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_EQ(values[1], INFINITY);
    EXPECT_EQ(values[2], 0.0);
    EXPECT_EQ(values[3], 8.0);
  });
}

TEST(Gemm, AddsUpRowsOfA) {
  int computed = 0;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const Extents& extents : {Extents{136, 72, 40}, Extents{8, 16, 200}, Extents{65, 33, 7}, Extents{4, 4, 0}})
      for (bool accumulate : {false, true}) {
        const Case c(extents, dtype, DType::f32, true, false, accumulate);
        const auto with_sums = [&](TypedArray& to, std::vector<float>& row_sums) {
          Args args = c.with_c(to);
          args.row_sums = row_sums.data();
          return args;
        };
        std::vector<float> expected(size(extents.m), 0.5f);
        TypedArray c_of_reference = c.start;
        reference_run(with_sums(c_of_reference, expected));
        for_each_variant(kernel_set().gemm, dtype, [&](const Variant& variant, Stream& stream) {
          SCOPED_TRACE(testing::Message() << variant.name << " " << extents.m << "x" << extents.n << "x" << extents.k);
          TypedArray result = c.start;
          std::vector<float> row_sums(size(extents.m), 0.5f);
          const Args args = with_sums(result, row_sums);
          if (!variant.sums_rows || !variant.sums_rows(args)) {
            EXPECT_THROW(variant.run(stream, args), InvalidArgument);
            return;
          }
          ++computed;
          variant.run(stream, args);
          finish(stream);
          expect_product(c, result);
          const double bound = 2 * static_cast<double>((extents.k + 2) * (extents.k + 1)) * 0x1p-24;
          for (std::size_t i = 0; i < row_sums.size(); ++i) EXPECT_NEAR(row_sums[i], expected[i], bound) << i;
        });
      }
  EXPECT_GT(computed, 0);
}

TEST(Gemm, AcceptsOperandsAlignedToOneElement) {
  const Case aligned({16, 16, 16}, DType::f16, DType::f32, false, false, false);
  const auto shifted = [](const TypedArray& values) {
    std::vector<double> moved = values.values();
    moved.insert(moved.begin(), 0.0);
    return TypedArray(DType::f16, moved);
  };
  TypedArray a = shifted(aligned.a), b = shifted(aligned.b);
  for_each_variant(kernel_set().gemm, DType::f16, [&](const Variant& variant, Stream& stream) {
    TypedArray c = aligned.start;
    Args args = aligned.with_c(c);
    args.a = a.as<Half>() + 1;
    args.b = b.as<Half>() + 1;
    variant.run(stream, args);
    finish(stream);
    expect_product(aligned, c);
  });
}

TEST(Gemm, RequiresItsWorkspace) {
  const Case expected(kLongAndThin, DType::f16, DType::f32, false, false, false);
  for_each_variant(kernel_set().gemm, DType::f16, [&](const Variant& variant, Stream& stream) {
    TypedArray c = expected.start;
    Args args = expected.with_c(c);
    args.workspace = nullptr;
    if (variant.workspace_bytes) {
      EXPECT_THROW(variant.run(stream, args), InvalidArgument);
    } else {
      EXPECT_NO_THROW(variant.run(stream, args));
    }
    finish(stream);
  });
}

TEST(GemmOnCpu, TensorCoreVariantsRejectF32) {
  float data[3] = {};
  kernels::HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  for (const Variant& variant : kernel_set().gemm) {
    if (!variant.computes || variant.computes(DType::f32)) continue;
    EXPECT_THROW(variant.run(*stream, {.m = 1, .n = 1, .k = 1, .a = data, .b = data + 1, .c = data + 2}),
                 InvalidArgument);
  }
}

TEST(GemmOnCpu, FirstStepsRejectHalves) {
  const std::uint16_t data[2] = {};
  float c = 0;
  kernels::HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  for (const Variant& variant : kernel_set().gemm) {
    if (!variant.computes || variant.computes(DType::f16)) continue;
    EXPECT_THROW(variant.run(*stream, {.dtype = DType::f16, .m = 1, .n = 1, .k = 1, .a = data, .b = data + 1, .c = &c}),
                 InvalidArgument);
  }
}

TEST(GemmOnCpu, DoesNotChooseVariantsForGpus) {
  const kernels::HostDevice device;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    EXPECT_EQ(pick_variant(kernel_set().gemm, device, dtype).name, "strips");
}

TEST(Gemm, ReferenceMatchesAHandComputedProduct) {
  const float a[] = {1, 2, 3, 4, 5, 6};  // [2, 3], or [3, 2] transposed
  const float b[] = {1, 0, 2, 1, 0, 3};  // [3, 2], or [2, 3] transposed
  std::vector<float> c(4, 10);
  Args args{.m = 2, .n = 2, .k = 3, .a = a, .b = b, .c = c.data()};
  reference_run(args);
  EXPECT_EQ(c, (std::vector<float>{5, 11, 14, 23}));
  args.transpose_b = true;
  reference_run(args);
  EXPECT_EQ(c, (std::vector<float>{7, 10, 16, 22}));
  args.transpose_a = true;
  args.accumulate = true;
  reference_run(args);
  EXPECT_EQ(c, (std::vector<float>{7 + 11, 10 + 16, 16 + 14, 22 + 20}));
}

TEST(Gemm, RejectsNegativeExtentsNullOverlapAndOtherTypes) {
  float data[12] = {};
  const Args good{.m = 2, .n = 2, .k = 2, .a = data, .b = data + 4, .c = data + 8};
  const auto with = [&](auto change) {
    Args args = good;
    change(args);
    return args;
  };
  EXPECT_NO_THROW(check_args(good));
  EXPECT_THROW(check_args(with([](Args& args) { args.k = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Args& args) { args.a = nullptr; })), InvalidArgument);
  EXPECT_THROW(check_args(with([&](Args& args) { args.c = data + 7; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Args& args) { args.dtype = DType::i32; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Args& args) { args.c_dtype = DType::f16; })), InvalidArgument);
}

TEST(Gemm, RejectsExtentsBeyondItsIndexType) {
  float data[1] = {};
  const std::int64_t huge = std::int64_t{1} << 40;
  for_each_variant(kernel_set().gemm, DType::f32, [&](const Variant& variant, Stream& stream) {
    EXPECT_THROW(variant.run(stream, {.m = 1, .n = 1, .k = huge, .a = data, .b = data, .c = data + 1}),
                 InvalidArgument);
  });
}

}  // namespace
}  // namespace gradring::kernels::gemm
