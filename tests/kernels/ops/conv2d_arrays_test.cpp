// SPDX-License-Identifier: Apache-2.0
// What convolutions do with arrays that begin anywhere, and with values that are not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/conv2d_cases.h"
#include "tests/support/each_stream.h"
#include "tests/support/kernel_variants.h"

namespace gradring::kernels::conv2d {
namespace {

using namespace gradring::tests;

/// An array that starts `offset` elements behind an address that vectors can have.
class ShiftedArray {
 public:
  ShiftedArray(DType dtype, const std::vector<double>& values, std::size_t offset)
      : offset_(offset), array_(TypedArray(dtype, prepended(values, offset))) {}

  void* data() { return static_cast<std::byte*>(array_.data()) + offset_ * size_of(array_.dtype()); }
  TypedArray without_offset() const {
    const std::vector<double> values = array_.values();
    return TypedArray(array_.dtype(), std::span(values).subspan(offset_));
  }

 private:
  static std::vector<double> prepended(std::vector<double> values, std::size_t count) {
    values.insert(values.begin(), count, std::nan(""));
    return values;
  }

  std::size_t offset_;
  TypedArray array_;
};

TEST(Conv2d, TakesArraysThatAreNotAligned) {
  const Geometry g = dense(2, 6, 7, 16, 24, 3, 3, 2, 1);  // vectors, if arrays are aligned
  for (DType dtype : kTypes) {
    const Case c(g, dtype);
    TypedArray expected_dw = c.dw;
    reference_wgrad({g, dtype, c.x.data(), c.dy.data(), expected_dw.as<float>(), false});
    for (const std::size_t shifted : {0, 1, 2}) {
      SCOPED_TRACE("array " + std::to_string(shifted));
      const auto offset = [&](std::size_t array) { return std::size_t{array == shifted}; };
      for_each_variant(kernel_set().conv2d, dtype, [&](const Variant& variant, Stream& stream) {
        ShiftedArray x(dtype, c.x.values(), offset(0)), w(dtype, c.w.values(), offset(1));
        ShiftedArray y(dtype, TypedArray::unwritten(dtype, c.y.elements()).values(), offset(2));
        variant.forward(stream, {g, dtype, x.data(), w.data(), y.data()});
        ShiftedArray dy(dtype, c.dy.values(), offset(0));
        ShiftedArray dx(dtype, TypedArray::unwritten(dtype, c.dx.elements()).values(), offset(2));
        variant.dgrad(stream, {g, dtype, dy.data(), w.data(), dx.data()});
        ShiftedArray gradient(dtype, c.dy.values(), offset(1));
        TypedArray dw = TypedArray::unwritten(DType::f32, c.dw.elements());
        TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
        variant.wgrad(stream, {g, dtype, x.data(), gradient.data(), dw.as<float>(), false, workspace.as<float>()});
        finish(stream);
        c.expect_sums(y.without_offset(), c.y, g.filter_elements());
        c.expect_sums(dx.without_offset(), c.dx, g.taps() * g.group_filters());
        c.expect_sums(dw, expected_dw, g.batch * g.out_height() * g.out_width());
      });
    }
  }
}

/// A NaN and an infinity of the data reach the results whose sums they are in, and no others.
TEST(Conv2d, KeepsNonFiniteValuesToTheirSums) {
  const auto with_two = [](DType dtype, const TypedArray& array) {
    std::vector<double> values = array.values();
    values.at(values.size() / 3) = std::numeric_limits<double>::quiet_NaN();
    values.at(values.size() * 3 / 4) = -std::numeric_limits<double>::infinity();
    return TypedArray(dtype, values);
  };
  for (const Geometry& g : {dense(2, 9, 8, 16, 64, 3, 3, 2, 1), dense(2, 7, 6, 5, 7, 3, 2, 1, 1)})
    for (DType dtype : kTypes) {
      Case c(g, dtype);
      c.x = with_two(dtype, c.x);
      reference_forward({g, dtype, c.x.data(), c.w.data(), c.y.data()});
      TypedArray expected_dw = c.dw;
      reference_wgrad({g, dtype, c.x.data(), c.dy.data(), expected_dw.as<float>(), false});
      const TypedArray dy = with_two(dtype, c.dy);
      reference_dgrad({g, dtype, dy.data(), c.w.data(), c.dx.data()});
      for_each_variant(kernel_set().conv2d, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y = TypedArray::unwritten(dtype, c.y.elements());
        TypedArray dx = TypedArray::unwritten(dtype, c.dx.elements());
        TypedArray dw = c.dw;
        TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
        variant.forward(stream, {g, dtype, c.x.data(), c.w.data(), y.data()});
        variant.dgrad(stream, {g, dtype, dy.data(), c.w.data(), dx.data()});
        variant.wgrad(stream, {g, dtype, c.x.data(), c.dy.data(), dw.as<float>(), false, workspace.as<float>()});
        finish(stream);
        c.expect_sums(y, c.y, g.filter_elements());
        c.expect_sums(dx, c.dx, g.taps() * g.group_filters());
        c.expect_sums(dw, expected_dw, g.batch * g.out_height() * g.out_width());
      });
    }
}

}  // namespace
}  // namespace gradring::kernels::conv2d
