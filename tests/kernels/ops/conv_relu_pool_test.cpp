// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/partial_sums.h"
#include "tests/support/values.h"

namespace gradring::kernels::conv_relu_pool {
namespace {

using namespace gradring::tests;

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Square kernels, and square images unless a width is given.
struct Sizes {
  std::int64_t batch, image, inputs, outputs, kernel, window;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t width = image;
};

Geometry geometry(const Sizes& s) {
  return {.conv = {.batch = s.batch,
                   .in_height = s.image,
                   .in_width = s.width,
                   .in_channels = s.inputs,
                   .out_channels = s.outputs,
                   .kernel_height = s.kernel,
                   .kernel_width = s.kernel,
                   .stride = s.stride,
                   .padding = s.padding},
          .window = s.window};
}

const Geometry kCases[] = {
    geometry({1, 28, 1, 32, 3, 2}),            // the ConvNet's own two,
    geometry({2, 13, 32, 64, 3, 2}),           // where the last row and column fill no window
    geometry({2, 12, 3, 32, 3, 2}),            // colours
    geometry({3, 13, 1, 40, 5, 2}),            // filters of 5 x 5, in two blocks
    geometry({5, 9, 16, 7, 3, 2}),             // fewer outputs than a vector
    geometry({1, 8, 33, 33, 3, 2}),            // odd numbers of channels
    geometry({2, 6, 2, 3, 3, 2}),              // dw in one small tile
    geometry({2, 8, 64, 32, 3, 2, 1, 1}),      // whole images in shared memory: with padding, and 64 inputs,
    geometry({355, 4, 32, 64, 3, 2}),          // several at once, in dw, of an odd number,
    geometry({2, 9, 32, 72, 3, 2, 2, 1}),      // with strides, and a block of outputs that is not full,
    geometry({2, 8, 40, 32, 3, 2, 1, 2}),      // with more padding, and a block of inputs that is not full,
    geometry({2, 9, 48, 72, 3, 2, 1, 1}),      // the same of both in dw,
    geometry({65, 4, 16, 40, 3, 2, 1, 1}),     // several images to a block
    geometry({3, 6, 64, 128, 3, 2, 1, 1, 9}),  // dw by wgmma in several blocks, with padding
    geometry({2, 9, 5, 9, 3, 2, 2, 1}),        // strides and padding
    geometry({2, 7, 32, 16, 5, 3, 1, 2}),      // large kernels and windows
    geometry({1, 6, 200, 3, 2, 2}),            // more inputs under a kernel row than registers
    geometry({2, 5, 2, 40, 1, 1}),             // nothing is pooled
    geometry({1, 40, 1, 1, 3, 2}),             // rows longer than a strip
    geometry({7, 11, 1, 37, 3, 2, 1, 1}),      // filters of few weights: with padding and an odd number of channels,
    geometry({2, 10, 3, 6, 3, 2, 1, 1}),       // colours with padding
    geometry({1900, 8, 1, 8, 3, 2}),           // and more windows than a block has in shared memory at once
    geometry({2, 6, 0, 16, 3, 2}),             // no inputs: only biases count
    geometry({2, 6, 2, 0, 3, 2}),              // no outputs: dx is 0
    geometry({2, 6, 16, 0, 3, 2}),
    geometry({0, 8, 2, 3, 3, 2}),
    geometry({2, 3, 2, 3, 3, 2}),  // one output of the convolution: no window
    geometry({2, 2, 2, 3, 3, 2}),  // none at all
    Geometry{.conv = {.batch = 2,
                      .in_height = 6,
                      .in_width = 11,
                      .in_channels = 4,
                      .out_channels = 5,
                      .kernel_height = 2,
                      .kernel_width = 4}},
    geometry({1, 4, 1, 3, 3, 2, 1, 0, 8200}),  // rows of few channels that are too long for shared memory
};

/// bf16 differs from f16 in how it is multiplied and rounded, not in how it is moved: the first cases launch each kernel.
std::span<const Geometry> cases_for(DType dtype) {
  return std::span(kCases).first(dtype == DType::bf16 ? 12 : std::size(kCases));
}

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// Memory that a variant lends itself, with its alignment.
struct Workspace {
  std::vector<std::byte> bytes;
  explicit Workspace(std::size_t size) : bytes(size + 64, std::byte{0xff}) {}
  Workspace(const Variant& variant, const Geometry& g) : Workspace(variant.workspace_bytes(g)) {}
  void* data() { return bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64) % 64; }
};

/// Small multiples of a power of two: all sums are exact, so that every variant finds the same maxima.
std::vector<double> exact_values(std::size_t elements, std::uint64_t seed, int most) {
  std::vector<double> values = random_values(elements, seed, -most, most + 1);
  for (double& value : values) value = std::floor(value) / 4;
  return values;
}

/// Inputs, and what the reference makes of them.
struct Case {
  Geometry g;
  DType dtype;
  TypedArray x, w, b, dy, y, dx, dw, db;
  std::vector<std::uint8_t> codes;

  Case(const Geometry& geometry, DType type)
      : g(geometry),
        dtype(type),
        x(type, exact_values(size(g.conv.in_elements()), 1, 2)),
        w(type, exact_values(size(g.conv.weight_elements()), 2, 2)),
        b(type, exact_values(size(g.conv.out_channels), 3, 2)),
        dy(type, exact_values(size(g.out_elements()), 4, 2)),
        y(TypedArray::unwritten(type, dy.elements())),
        dx(TypedArray::unwritten(type, x.elements())),
        dw(TypedArray::unwritten(DType::f32, w.elements())),
        db(TypedArray::unwritten(DType::f32, b.elements())),
        codes(size(g.code_bytes()), 0xee) {
    reference_forward({g, dtype, x.data(), w.data(), b.data(), y.data(), codes.data()});
    reference_backward(backward_args(dx, dw, db));
  }

  BackwardArgs backward_args(TypedArray& to_dx, TypedArray& to_dw, TypedArray& to_db) const {
    return {.geometry = g,
            .dtype = dtype,
            .x = x.data(),
            .w = w.data(),
            .dy = dy.data(),
            .codes = codes.data(),
            .dx = to_dx.data(),
            .dw = to_dw.as<float>(),
            .db = to_db.as<float>()};
  }
};

TEST(ConvReluPool, ForwardFindsTheSameMaxima) {
  for (DType dtype : kTypes)
    for (const Geometry& g : cases_for(dtype)) {
      SCOPED_TRACE(g.conv.in_channels);
      const Case c(g, dtype);
      for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
        Workspace workspace(variant, g);
        TypedArray y = TypedArray::unwritten(dtype, c.y.elements());
        std::vector<std::uint8_t> codes(c.codes.size(), 0xee);
        variant.forward(stream,
                        {g, dtype, c.x.data(), c.w.data(), c.b.data(), y.data(), codes.data(), workspace.data()});
        finish(stream);
        expect_equal(y.values(), c.y.values());
        EXPECT_EQ(codes, c.codes);
      });
    }
}

TEST(ConvReluPool, BackwardIsExactOnExactSums) {
  for (DType dtype : kTypes)
    for (const Geometry& g : cases_for(dtype)) {
      SCOPED_TRACE(g.conv.in_channels);
      const Case c(g, dtype);
      for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
        Workspace workspace(variant, g);
        TypedArray dx = TypedArray::unwritten(dtype, c.dx.elements());
        TypedArray dw = TypedArray::unwritten(DType::f32, c.dw.elements());
        TypedArray db = TypedArray::unwritten(DType::f32, c.db.elements());
        BackwardArgs args = c.backward_args(dx, dw, db);
        args.workspace = workspace.data();
        alignas(64) std::byte no_elements{0xee};
        if (c.dx.elements() == 0) args.dx = &no_elements;  // not null: variants have to look at the extents
        variant.backward(stream, args);
        finish(stream);
        expect_equal(dx.values(), c.dx.values());
        expect_equal(dw.values(), c.dw.values());
        expect_equal(db.values(), c.db.values());
        EXPECT_EQ(no_elements, std::byte{0xee});

        args.accumulate = true;  // once more on top, and nobody asks for dx
        args.dx = nullptr;
        variant.backward(stream, args);
        finish(stream);
        const std::vector<double> once = c.dw.values(), twice = dw.values();
        for (std::size_t i = 0; i < once.size(); ++i) ASSERT_EQ(twice[i], 2 * once[i]) << i;
        const std::vector<double> biases = c.db.values(), doubled = db.values();
        for (std::size_t i = 0; i < biases.size(); ++i) ASSERT_EQ(doubled[i], 2 * biases[i]) << i;
      });
    }
}

TEST(ConvReluPool, LeavesPartialSumsThatAddUpToTheGradients) {
  for (DType dtype : kTypes)
    for (const Geometry& g : cases_for(dtype)) {
      SCOPED_TRACE(g.conv.in_channels);
      const Case c(g, dtype);
      for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
        Workspace workspace(variant, g);
        TypedArray dx = TypedArray::unwritten(dtype, c.dx.elements());
        TypedArray dw = TypedArray::unwritten(DType::f32, c.dw.elements());
        TypedArray db = TypedArray::unwritten(DType::f32, c.db.elements());
        BackwardArgs args = c.backward_args(dx, dw, db);
        PartialSums left;
        Workspace sums(variant.partial_sum_bytes ? variant.partial_sum_bytes(g) : 0);
        args.workspace = workspace.data(), args.partial_sums = &left, args.partial_sum_memory = sums.data();
        if (c.dx.elements() == 0) args.dx = nullptr;
        variant.backward(stream, args);
        finish(stream);
        EXPECT_TRUE(variant.name != "mma" || c.dw.elements() == 0 || left.size() == 2) << "dw and db";
        for (std::byte& byte : workspace.bytes) byte = std::byte{0xff};  // the sums are not there
        add_up(left);
        expect_equal(dw.values(), c.dw.values());
        expect_equal(db.values(), c.db.values());
      });
    }
}

TEST(ConvReluPool, RoundsInputsInF32AsItReadsThem) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const Geometry& g : cases_for(dtype)) {
      const std::vector<double> values = random_values(size(g.conv.in_elements()), 12);
      const TypedArray before(dtype, values), x(DType::f32, values);
      const Case c(g, dtype);
      for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
        if (!variant.reads || !variant.reads(g, dtype, DType::f32)) return;
        Workspace workspace(variant, g);
        const auto results_of = [&](const void* from, std::optional<DType> x_dtype) {
          TypedArray y = TypedArray::unwritten(dtype, c.y.elements()), no_dx = TypedArray::unwritten(dtype, 0);
          TypedArray dw = TypedArray::unwritten(DType::f32, c.dw.elements());
          TypedArray db = TypedArray::unwritten(DType::f32, c.db.elements());
          std::vector<std::uint8_t> codes(c.codes.size(), 0xee);
          variant.forward(stream,
                          {g, dtype, from, c.w.data(), c.b.data(), y.data(), codes.data(), workspace.data(), x_dtype});
          BackwardArgs args = c.backward_args(no_dx, dw, db);
          args.x = from, args.dx = nullptr, args.workspace = workspace.data(), args.x_dtype = x_dtype;
          variant.backward(stream, args);
          finish(stream);
          return std::tuple(y.values(), codes, dw.values(), db.values());
        };
        EXPECT_EQ(results_of(x.data(), DType::f32), results_of(before.data(), std::nullopt));
      });
    }
}

TEST(ConvReluPool, ForwardStaysWithinItsBoundOnRandomValues) {
  const Geometry g = geometry({2, 13, 32, 64, 3, 2});
  const double terms = static_cast<double>(g.conv.filter_elements()) + 1;
  for (DType dtype : kTypes) {
    const TypedArray x(dtype, random_values(size(g.conv.in_elements()), 5));
    const TypedArray w(dtype, random_values(size(g.conv.weight_elements()), 6));
    const TypedArray b(dtype, random_values(size(g.conv.out_channels), 7));
    TypedArray expected = TypedArray::unwritten(dtype, size(g.out_elements()));
    std::vector<std::uint8_t> codes(size(g.code_bytes()));
    reference_forward({g, dtype, x.data(), w.data(), b.data(), expected.data(), codes.data()});
    const std::vector<double> truth = expected.values();
    for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
      Workspace workspace(variant, g);
      TypedArray y = TypedArray::unwritten(dtype, expected.elements());
      variant.forward(stream, {g, dtype, x.data(), w.data(), b.data(), y.data(), codes.data(), workspace.data()});
      finish(stream);
      expect_close(y.values(), truth,
                   [&](std::size_t i) { return terms * terms * 0x1p-24 + 2 * rounding(dtype, truth[i]); });
    });
  }
}

TEST(ConvReluPool, PassesNaNAndTakesTheFirstOfEqualMaxima) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Geometry g{.conv = {.batch = 1,
                            .in_height = 2,
                            .in_width = 8,
                            .in_channels = 1,
                            .out_channels = 1,
                            .kernel_height = 1,
                            .kernel_width = 1}};
  for (DType dtype : kTypes) {
    const TypedArray x(dtype, std::vector<double>{1, 2, nan, 5, -1, -2, 0, 0,  //
                                                  2, 2, 9, 0, -3, -4, 0, -1});
    const TypedArray w(dtype, std::vector<double>{1});
    const TypedArray b(dtype, std::vector<double>{0});
    for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
      Workspace workspace(variant, g);
      TypedArray y = TypedArray::unwritten(dtype, 4);
      std::vector<std::uint8_t> codes(4, 0xee);
      variant.forward(stream, {g, dtype, x.data(), w.data(), b.data(), y.data(), codes.data(), workspace.data()});
      finish(stream);
      expect_equal(y.values(), std::vector<double>{2, nan, 0, 0});
      constexpr auto alone = [](unsigned code) { return packed_codes(code, kCutOff); };
      EXPECT_EQ(codes, (std::vector<std::uint8_t>{alone(1), alone(0), alone(kCutOff), alone(kCutOff)}));
    });
  }
}

TEST(ConvReluPool, PacksTwoChannelsPerByteWithinAPosition) {
  // Two positions of three channels, which are x, -x and 1 - x.
  const Geometry g = geometry({1, 2, 1, 3, 1, 2, 1, 0, 4});
  EXPECT_EQ(g.code_bytes_of_position(), 2);
  EXPECT_EQ(g.code_bytes(), 4);
  for (DType dtype : kTypes) {
    const TypedArray x(dtype, std::vector<double>{0, 1, 4, 3,  //
                                                  2, 3, 2, 5});
    const TypedArray w(dtype, std::vector<double>{1, -1, -1});
    const TypedArray b(dtype, std::vector<double>{0, 0, 1});
    for_each_variant(kernel_set().conv_relu_pool, dtype, [&](const Variant& variant, Stream& stream) {
      Workspace workspace(variant, g);
      TypedArray y = TypedArray::unwritten(dtype, 6);
      std::vector<std::uint8_t> codes(4, 0xee);
      variant.forward(stream, {g, dtype, x.data(), w.data(), b.data(), y.data(), codes.data(), workspace.data()});
      finish(stream);
      expect_equal(y.values(), std::vector<double>{3, 0, 1, 5, 0, 0});
      EXPECT_EQ(codes, (std::vector<std::uint8_t>{0xf3, 0xf0, 0xf3, 0xff}));
    });
  }
}

TEST(ConvReluPool, ReferenceGradientsMatchFiniteDifferences) {
  const Geometry g = geometry({2, 6, 2, 3, 3, 2});
  const TypedArray x(DType::f32, random_values(size(g.conv.in_elements()), 8));
  const TypedArray w(DType::f32, random_values(size(g.conv.weight_elements()), 9));
  const TypedArray b(DType::f32, random_values(size(g.conv.out_channels), 10));
  const TypedArray dy(DType::f32, random_values(size(g.out_elements()), 11));
  const std::vector<double> weights = dy.values();
  TypedArray y = TypedArray::unwritten(DType::f32, weights.size());
  std::vector<std::uint8_t> codes(size(g.code_bytes()));
  const auto loss = [&](const TypedArray& at_x, const TypedArray& at_w, const TypedArray& at_b) {
    reference_forward({g, DType::f32, at_x.data(), at_w.data(), at_b.data(), y.data(), codes.data()});
    const std::vector<double> values = y.values();
    return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  };
  loss(x, w, b);
  TypedArray dx = TypedArray::unwritten(DType::f32, x.elements());
  TypedArray dw = TypedArray::unwritten(DType::f32, w.elements());
  TypedArray db = TypedArray::unwritten(DType::f32, b.elements());
  reference_backward({.geometry = g,
                      .x = x.data(),
                      .w = w.data(),
                      .dy = dy.data(),
                      .codes = codes.data(),
                      .dx = dx.data(),
                      .dw = dw.as<float>(),
                      .db = db.as<float>()});
  // Piecewise linear: a step that crosses no edge is exact but for rounding.
  const double step = 0x1p-12;
  expect_gradient([&](std::span<const double> at) { return loss(TypedArray(DType::f32, at), w, b); }, x.values(),
                  dx.values(), step, 2e-3);
  expect_gradient([&](std::span<const double> at) { return loss(x, TypedArray(DType::f32, at), b); }, w.values(),
                  dw.values(), step, 2e-3);
  expect_gradient([&](std::span<const double> at) { return loss(x, w, TypedArray(DType::f32, at)); }, b.values(),
                  db.values(), step, 2e-3);
}

TEST(ConvReluPool, RejectsImagesOfMoreElementsThanMmaCounts) {
  const Geometry g = geometry({1, 28'000, 3, 1, 3, 2});
  const auto address = [](unsigned terabyte) {
    return reinterpret_cast<std::uint8_t*>(std::uintptr_t{terabyte} << 40);
  };
  const ForwardArgs args{g, DType::f16, address(1), address(2), address(3), address(4), address(5), address(6)};
  for_each_variant(kernel_set().conv_relu_pool, DType::f16, [&](const Variant& variant, Stream& stream) {
    if (variant.name == "mma") {
      EXPECT_THROW(variant.forward(stream, args), InvalidArgument);
    }
  });
}

TEST(ConvReluPool, RejectsImpossibleWindowsNullAndOtherTypes) {
  std::vector<float> data(256);
  float* x = data.data();
  std::uint8_t codes[64] = {};
  const Geometry good = geometry({1, 6, 1, 1, 3, 2});
  ForwardArgs args{good, DType::f32, x, x + 64, x + 128, x + 192, codes, nullptr};
  EXPECT_NO_THROW(check_args(args));
  const auto refused = [&](auto change) {
    ForwardArgs changed = args;
    change(changed);
    EXPECT_THROW(check_args(changed), InvalidArgument);
  };
  refused([](ForwardArgs& a) { a.geometry.window = 0; });
  refused([](ForwardArgs& a) { a.geometry.window = 4; });
  refused([](ForwardArgs& a) { a.geometry.conv.stride = 0; });
  refused([](ForwardArgs& a) { a.b = nullptr; });
  refused([](ForwardArgs& a) { a.codes = nullptr; });
  refused([](ForwardArgs& a) { a.y = const_cast<void*>(a.x); });
  refused([](ForwardArgs& a) { a.dtype = DType::i32; });
  const BackwardArgs backward{good, DType::f32, x, x + 64, x + 128, codes, nullptr, x + 160, x + 192};
  EXPECT_NO_THROW(check_args(backward));
  BackwardArgs broken = backward;
  broken.db = nullptr;
  EXPECT_THROW(check_args(broken), InvalidArgument);
  broken = backward;
  broken.dx = const_cast<void*>(backward.dy);
  EXPECT_THROW(check_args(broken), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::conv_relu_pool
