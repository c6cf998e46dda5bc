// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/conv2d/conv2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/conv2d_cases.h"
#include "tests/support/each_stream.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/partial_sums.h"
#include "tests/support/safetensors.h"
#include "tests/support/values.h"

namespace gradring::kernels::conv2d {
namespace {

using namespace gradring::tests;

constexpr Geometry kCases[] = {
    dense(1, 14, 14, 1, 32, 3, 3),  // the ConvNet's own two, the first of a smaller image
    dense(1, 13, 13, 32, 64, 3, 3),       dense(0, 5, 5, 2, 3, 3, 3),  // no image
    dense(1, 1, 1, 1, 1, 1, 1),           dense(2, 2, 2, 1, 1, 3, 3),  // no output
    dense(3, 7, 5, 1, 16, 3, 3, 1, 1),  // filters of few weights: lines of an odd length,
    dense(2, 9, 8, 3, 40, 3, 3, 1, 1),  // more filters than a block has,
    dense(2, 8, 11, 1, 6, 5, 5, 1, 2),  // no whole vectors of filters,
    dense(3, 7, 5, 3, 7, 3, 3, 1, 1),   // nor of inputs,
    dense(1, 6, 7, 1, 24, 5, 5),        // many filters of 5 x 5
    dense(2, 5, 4, 31, 33, 3, 2),         dense(1, 6, 7, 33, 31, 1, 3, 1, 1),
    dense(2, 8, 7, 5, 9, 3, 3, 2, 1),     dense(1, 9, 9, 8, 8, 2, 2, 3),  // gaps
    dense(2, 7, 6, 16, 72, 3, 3, 2, 1),   // wide runs beside padding, more than one tile of columns
    dense(1, 3, 3, 2, 2, 5, 5, 1, 4),     // some outputs see padding only
    dense(1, 4, 4, 0, 2, 3, 3),           // an empty sum
    dense(4, 9, 7, 32, 72, 3, 2, 1, 1),   // blocks of positions that end within images
    dense(70, 4, 6, 32, 8, 3, 3, 2),      // images of one row
    dense(1, 5, 258, 32, 8, 3, 3, 2, 1),  // one row more than a panel has room for
    dense(1, 5, 256, 32, 8, 3, 3, 2, 1),  dense(2, 6, 9, 7, 3, 2, 5, 3, 2),
    dense(2, 9, 8, 8, 64, 3, 3, 2, 1),     // whole k-tiles of filters, and inputs that a stride skips
    dense(3, 10, 9, 16, 16, 5, 4, 3, 2),   // more offsets within a stride than products of a launch
    dense(1, 15, 17, 8, 8, 15, 15, 1, 2),  // as many rows of a kernel as gather.cuh has masks for, and more
    dense(1, 18, 19, 8, 8, 17, 16),
};

constexpr Geometry kGroupedCases[] = {
    depthwise(2, 8, 9, 32, 3, 3, 1, 1),  // as in a MobileNet
    depthwise(1, 9, 7, 24, 3, 3, 2, 1),
    depthwise(2, 5, 6, 13, 3, 3, 1, 1),     // channels that are no multiple of a vector
    depthwise(1, 4, 5, 200, 3, 3, 1, 1),    // more than one block of channels
    depthwise(1, 7, 11, 16, 5, 2, 1, 1),    // no square
    depthwise(1, 10, 8, 40, 5, 5, 3, 2),    // gaps between what stride 3 sees
    depthwise(2, 6, 6, 8, 1, 1),            // one position
    depthwise(2, 2, 2, 8, 3, 3),            // no output
    depthwise(0, 5, 5, 8, 3, 3),            // no image
    depthwise(1, 3, 3, 8, 5, 5, 1, 4),      // some outputs see padding only
    depthwise(1, 6, 5, 7, 2, 5, 1, 1),      // one channel a thread
    depthwise(1, 13, 13, 8, 11, 11, 1, 5),  // more kernel positions than a block keeps weights of
    depthwise(1, 13, 12, 3, 12, 11, 1, 5),  // more than the native variant keeps
    geometry(2, 5, 6, 16, 16, 4, 3, 3, 1, 1),
    geometry(1, 7, 6, 18, 30, 3, 3, 2, 2, 1),  // groups that are no multiple of a strip
    geometry(1, 5, 5, 8, 16, 8, 3, 3, 1, 1),   // two filters for each channel
    geometry(1, 5, 5, 36, 2, 2, 3, 3),         // one filter in a group
    geometry(1, 4, 4, 5, 7, 1, 3, 3, 1, 1),    // one group: an ordinary convolution
    geometry(1, 4, 4, 0, 4, 2, 3, 3),          // empty sums
};

/// A table of variants and what they are tested with.
struct Table {
  std::span<const Variant> variants;
  std::span<const Geometry> cases;

  /// Of conv2d's, bf16 differs from f16 in how it is multiplied and rounded, not in how it is moved: the first cases
  /// launch each kernel.
  std::span<const Geometry> cases_for(DType dtype) const {
    return dtype == DType::bf16 && cases.data() == kCases ? cases.first(10) : cases;
  }
};

Table of_one_group() { return {kernel_set().conv2d, kCases}; }
Table of_groups() { return {kernel_set().grouped_conv2d, kGroupedCases}; }

/// Each case also with bias, ReLU or both, in turn.
void expect_forward(const Table& table) {
  for (DType dtype : kTypes) {
    int number = 0;
    for (const Geometry& g : table.cases_for(dtype)) {
      const Case c(g, dtype);
      const TypedArray bias(dtype, random_values(size(g.out_channels), 5));
      const int turn = number++ % 3;
      ForwardArgs args{.geometry = g, .dtype = dtype, .x = c.x.data(), .w = c.w.data()};
      ForwardArgs finished = args;
      finished.bias = turn != 1 ? bias.data() : nullptr;
      finished.relu = turn != 2;
      TypedArray expected = TypedArray::unwritten(dtype, c.y.elements());
      finished.y = expected.data();
      reference_forward(finished);
      for_each_variant(table.variants, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y = TypedArray::unwritten(dtype, c.y.elements());
        TypedArray finished_y = y;
        args.y = y.data();
        finished.y = finished_y.data();
        variant.forward(stream, args);
        variant.forward(stream, finished);
        finish(stream);
        c.expect_sums(y, c.y, g.filter_elements());
        c.expect_sums(finished_y, expected, g.filter_elements() + 1);
      });
    }
  }
}

void expect_nan_after_relu(const Table& table, std::initializer_list<Geometry> geometries) {
  for (const Geometry& g : geometries)
    for (DType dtype : kTypes) {
      const TypedArray x(dtype, std::vector<double>(size(g.in_elements()), std::nan("")));
      const TypedArray w(dtype, random_values(size(g.weight_elements()), 2));
      for_each_variant(table.variants, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y(dtype, std::vector<double>(size(g.out_elements()), 0.0));
        variant.forward(stream, {.geometry = g,
                                 .dtype = dtype,
                                 .x = x.data(),
                                 .w = w.data(),
                                 .y = y.data(),
                                 .bias = w.data(),
                                 .relu = true});
        finish(stream);
        for (const double value : y.values()) EXPECT_TRUE(std::isnan(value));
      });
    }
}

void expect_dgrad(const Table& table) {
  for (DType dtype : kTypes)
    for (const Geometry& g : table.cases_for(dtype)) {
      const Case c(g, dtype);
      for_each_variant(table.variants, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray dx = TypedArray::unwritten(dtype, c.dx.elements());
        variant.dgrad(stream, {g, dtype, c.dy.data(), c.w.data(), dx.data()});
        finish(stream);
        c.expect_sums(dx, c.dx, g.taps() * g.group_filters());
      });
    }
}

void expect_wgrad(const Table& table) {
  for (DType dtype : kTypes)
    for (const Geometry& g : table.cases_for(dtype))
      for (bool accumulate : {false, true}) {
        if (dtype == (accumulate ? DType::f16 : DType::bf16)) continue;  // f32 both ways, the others one way each
        const Case c(g, dtype);
        TypedArray expected = c.dw;
        reference_wgrad({g, dtype, c.x.data(), c.dy.data(), expected.as<float>(), accumulate});
        for_each_variant(table.variants, dtype, [&](const Variant& variant, Stream& stream) {
          TypedArray dw = c.dw;
          TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
          variant.wgrad(stream, {g, dtype, c.x.data(), c.dy.data(), dw.as<float>(), accumulate, workspace.as<float>()});
          finish(stream);
          c.expect_sums(dw, expected, g.batch * g.out_height() * g.out_width());
          if (accumulate) return;
          dw = TypedArray::unwritten(DType::f32, c.dw.elements());
          PartialSums left;
          variant.wgrad(stream,
                        {g, dtype, c.x.data(), c.dy.data(), dw.as<float>(), accumulate, workspace.as<float>(), &left});
          finish(stream);
          add_up(left);
          c.expect_sums(dw, expected, g.batch * g.out_height() * g.out_width());
        });
      }
}

void expect_workspace_of_smaller_batches(const Table& table) {
  for (const Variant& variant : table.variants)
    for (Geometry g : table.cases) {
      std::size_t before = 0;
      for (g.batch = 0; g.batch < 200; g.batch += 1 + g.batch / 8) {
        const std::size_t bytes = variant.workspace_bytes(g);
        EXPECT_GE(bytes, before) << variant.name << ", batch " << g.batch;
        before = bytes;
      }
    }
}

TEST(Conv2d, ForwardStaysWithinItsBound) { expect_forward(of_one_group()); }
TEST(Conv2d, ReluKeepsNaN) {
  // Vectors of channels, a filter of few weights, and neither
  expect_nan_after_relu(of_one_group(),
                        {dense(1, 4, 4, 8, 8, 3, 3), dense(1, 4, 4, 1, 8, 3, 3), dense(1, 4, 4, 5, 8, 3, 3)});
}
TEST(Conv2d, DgradStaysWithinItsBound) { expect_dgrad(of_one_group()); }
TEST(Conv2d, WgradStaysWithinItsBound) { expect_wgrad(of_one_group()); }
TEST(Conv2d, ASmallerBatchNeedsNoLargerWorkspace) { expect_workspace_of_smaller_batches(of_one_group()); }

TEST(GroupedConv2d, ForwardStaysWithinItsBound) { expect_forward(of_groups()); }
TEST(GroupedConv2d, ReluKeepsNaN) { expect_nan_after_relu(of_groups(), {depthwise(1, 4, 4, 8, 3, 3)}); }
TEST(GroupedConv2d, DgradStaysWithinItsBound) { expect_dgrad(of_groups()); }
TEST(GroupedConv2d, WgradStaysWithinItsBound) { expect_wgrad(of_groups()); }
TEST(GroupedConv2d, ASmallerBatchNeedsNoLargerWorkspace) { expect_workspace_of_smaller_batches(of_groups()); }

/// tests/golden/make_grouped_conv2d.py.
TEST(GroupedConv2d, EqualsPyTorch) {
  const StoredTensors golden = read_golden("grouped_conv2d");
  const struct {
    std::string name;
    Geometry geometry;
  } cases[] = {{"depthwise", depthwise(2, 7, 6, 8, 3, 3, 2, 1)}, {"grouped", geometry(2, 7, 6, 8, 12, 4, 3, 2, 1, 1)}};
  for (const auto& [name, g] : cases) {
    SCOPED_TRACE(name);
    const auto tensor = [&](const std::string& part) {
      const std::vector<float> values = golden.at(name + "." + part).as<float>();
      return TypedArray(DType::f32, std::vector<double>(values.begin(), values.end()));
    };
    const TypedArray x = tensor("x"), w = tensor("w"), y = tensor("y"), dy = tensor("dy"), dx = tensor("dx"),
                     dw = tensor("dw");
    for_each_variant(kernel_set().grouped_conv2d, DType::f32, [&](const Variant& variant, Stream& stream) {
      TypedArray actual_y = TypedArray::unwritten(DType::f32, y.elements());
      TypedArray actual_dx = TypedArray::unwritten(DType::f32, dx.elements());
      TypedArray actual_dw = TypedArray::unwritten(DType::f32, dw.elements());
      TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
      variant.forward(stream, {g, DType::f32, x.data(), w.data(), actual_y.data()});
      variant.dgrad(stream, {g, DType::f32, dy.data(), w.data(), actual_dx.data()});
      variant.wgrad(stream, {g, DType::f32, x.data(), dy.data(), actual_dw.as<float>(), false, workspace.as<float>()});
      finish(stream);
      expect_close(actual_y.values(), y.values(), [](std::size_t) { return 1e-5; });
      expect_close(actual_dx.values(), dx.values(), [](std::size_t) { return 1e-5; });
      expect_close(actual_dw.values(), dw.values(), [](std::size_t) { return 1e-4; });
    });
  }
}

TEST(Conv2d, ReferenceGradientsMatchFiniteDifferences) {
  for (const Geometry& g : {dense(2, 6, 5, 2, 3, 3, 2), dense(1, 7, 6, 3, 2, 3, 3, 2, 1),
                            geometry(2, 6, 5, 4, 6, 2, 3, 2), depthwise(1, 7, 6, 3, 3, 3, 2, 1)}) {
    const Case c(g, DType::f32);
    TypedArray dw = TypedArray::unwritten(DType::f32, c.w.elements());
    reference_wgrad({g, DType::f32, c.x.data(), c.dy.data(), dw.as<float>(), false});
    const std::vector<double> weights = c.dy.values();
    const auto loss = [&](const TypedArray& x, const TypedArray& w) {
      TypedArray y = TypedArray::unwritten(DType::f32, weights.size());
      reference_forward({g, DType::f32, x.data(), w.data(), y.data()});
      const std::vector<double> values = y.values();
      return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
    };
    // The loss is linear in each argument, so that a long step is exact and loses least to rounding.
    expect_gradient([&](std::span<const double> x) { return loss(TypedArray(DType::f32, x), c.w); }, c.x.values(),
                    c.dx.values(), 1, 1e-5);
    expect_gradient([&](std::span<const double> w) { return loss(c.x, TypedArray(DType::f32, w)); }, c.w.values(),
                    dw.values(), 1, 1e-5);
  }
}

TEST(Conv2d, RejectsImpossibleGeometriesNullOverlapAndOtherTypes) {
  std::vector<float> data(64);
  float* x = data.data();
  const Geometry good = dense(1, 4, 4, 1, 1, 3, 3);
  const auto with = [&](auto change) {
    Geometry g = good;
    change(g);
    return ForwardArgs{g, DType::f32, x, x + 16, x + 32};
  };
  EXPECT_NO_THROW(check_args(with([](Geometry&) {})));
  EXPECT_THROW(check_args(with([](Geometry& g) { g.batch = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.kernel_width = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.stride = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.padding = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.groups = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.groups = 3; })), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, nullptr, x + 16, x + 32}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, x, x + 16, x + 15}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::i64, x, x + 16, x + 32}), InvalidArgument);
  EXPECT_THROW(check_args(DgradArgs{good, DType::f32, x, nullptr, x + 32}), InvalidArgument);
  EXPECT_THROW(check_args(WgradArgs{good, DType::f32, x, x + 32, nullptr, false}), InvalidArgument);
}

TEST(Conv2d, RejectsGroupsInVariantsOfOne) {
  std::vector<float> data(64);
  HostDevice device;
  const auto stream = device.make_stream(StreamMode::in_place);
  for (const Variant& variant : kernel_set().conv2d)
    EXPECT_THROW(variant.forward(*stream, {depthwise(1, 3, 3, 2, 3, 3), DType::f32, &data[0], &data[18], &data[36]}),
                 InvalidArgument)
        << variant.name;
}

}  // namespace
}  // namespace gradring::kernels::conv2d
