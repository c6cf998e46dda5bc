// SPDX-License-Identifier: Apache-2.0
// bias, softmax_cross_entropy, sum_of_squares: a matrix row by row, and sums.
// max_pool2d after the first convolution.

#include <cmath>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

KernelCase bias_add(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 64 * 26 * 26);
  const std::int64_t channels = make.extent("channels", 32);
  KernelCase c = make.make("bias add");
  BenchArray& x = make.input(c, make.dtype(), rows * channels);
  BenchArray& b = make.input(c, make.dtype(), channels);
  BenchArray& y = make.output(c, make.dtype(), rows * channels, roundings(make.dtype(), 2));
  const auto args = [&x, &b, &y, rows, channels, dtype = make.dtype()](Side side) {
    return bias::AddArgs{
        .dtype = dtype, .rows = rows, .channels = channels, .x = x.at(side), .bias = b.at(side), .y = y.at(side)};
  };
  c.bytes = 2 * static_cast<double>(x.bytes());
  c.flops = static_cast<double>(rows * channels);
  c.reference = [=] { bias::reference::add(args(Side::host)); };
  make.variants(c, make.kernels().bias, make.dtype(),
                [=](const bias::Variant& variant, Stream& stream) { variant.add(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &b, &y, rows, channels] {
      plain().bias_add(x.as<float>(Side::device), b.as<float>(Side::device), y.as<float>(Side::device),
                       static_cast<std::size_t>(rows), static_cast<std::size_t>(channels));
    };
  return c;
}

KernelCase bias_grad(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 64 * 26 * 26);
  const std::int64_t channels = make.extent("channels", 32);
  KernelCase c = make.make("bias grad");
  BenchArray& dy = make.input(c, make.dtype(), rows * channels);
  const auto terms = static_cast<double>(rows);
  BenchArray& db =
      make.output(c, DType::f32, channels, roundings(DType::f32, 1, (terms / 256 + 256) * 0x1p-24 * terms));
  const auto args = [&dy, &db, rows, channels, dtype = make.dtype()](Side side) {
    return bias::GradArgs{
        .dtype = dtype, .rows = rows, .channels = channels, .dy = dy.at(side), .db = db.as<float>(side)};
  };
  c.bytes = static_cast<double>(dy.bytes());
  c.flops = static_cast<double>(rows * channels);
  c.reference = [=] { bias::reference::grad(args(Side::host)); };
  make.variants(c, make.kernels().bias, make.dtype(),
                [=](const bias::Variant& variant, Stream& stream) { variant.grad(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&dy, &db, rows, channels] {
      plain().bias_grad(dy.as<float>(Side::device), db.as<float>(Side::device), static_cast<std::size_t>(rows),
                        static_cast<std::size_t>(channels));
    };
  return c;
}

}  // namespace

Cases bias_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(bias_add(make));
  cases.push_back(bias_grad(make));
  return cases;
}

Cases softmax_cross_entropy_cases(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 64);
  const std::int64_t classes = make.extent("classes", 10);
  KernelCase c = make.make("softmax_cross_entropy");
  const float scale = 1.0f / static_cast<float>(rows);
  const auto terms = static_cast<double>(classes + 8);
  const double row_error = terms * 0x1p-24 * (3 + std::log(static_cast<double>(classes)));
  BenchArray& logits = make.input(c, make.dtype(), rows * classes);
  BenchArray& labels = make.input(c, DType::i32, rows, 0, static_cast<double>(classes));
  BenchArray& dlogits =
      make.output(c, make.dtype(), rows * classes, roundings(make.dtype(), 2, terms * 0x1p-23 * scale));
  const auto sum_terms = static_cast<double>(rows);
  BenchArray& loss = make.output(c, DType::f32, 1, roundings(DType::f32, sum_terms, sum_terms * row_error));
  BenchArray& correct = make.output(c, DType::i32, 1, exact());
  BenchArray& scratch = make.workspace(c, softmax_cross_entropy::workspace_bytes(rows));
  const auto args = [&logits, &labels, &dlogits, &loss, &correct, &scratch, rows, classes, scale,
                     dtype = make.dtype()](Side side) {
    return softmax_cross_entropy::Args{.dtype = dtype,
                                       .rows = rows,
                                       .classes = classes,
                                       .logits = logits.at(side),
                                       .labels = labels.as<std::int32_t>(side),
                                       .scale = scale,
                                       .dlogits = dlogits.at(side),
                                       .loss_sum = loss.as<float>(side),
                                       .correct = correct.as<std::int32_t>(side),
                                       .workspace = scratch.at(side)};
  };
  c.bytes = 2 * static_cast<double>(logits.bytes());
  c.reference = [=] { softmax_cross_entropy::reference::run(args(Side::host)); };
  make.variants(
      c, make.kernels().softmax_cross_entropy, make.dtype(),
      [=](const softmax_cross_entropy::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [args, rows] {
      const auto to = args(Side::device);
      const auto width = static_cast<std::size_t>(to.classes);
      *to.loss_sum = 0;
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
        *to.loss_sum += plain().softmax_cross_entropy(static_cast<const float*>(to.logits) + r * width,
                                                      static_cast<float*>(to.dlogits) + r * width, width,
                                                      static_cast<std::size_t>(to.labels[r]), to.scale);
    };
  return only(std::move(c));
}

Cases sum_of_squares_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", 431'242);
  KernelCase c = make.make("sum_of_squares");
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& sum = make.output(c, DType::f32, 1, roundings(DType::f32, static_cast<double>(n) / 65536 + 301));
  BenchArray& non_finite = make.output(c, DType::i32, 1, exact());
  BenchArray& first = make.output(c, DType::i64, 1, exact());
  BenchArray& tiny = make.output(c, DType::i64, 1, exact());
  BenchArray& scratch = make.workspace(c, sum_of_squares::workspace_bytes(static_cast<std::size_t>(n)));
  const auto args = [&x, &sum, &non_finite, &first, &tiny, &scratch, dtype = make.dtype()](Side side) {
    return sum_of_squares::Args{.dtype = dtype,
                                .x = x.at(side),
                                .elements = x.elements(),
                                .tiny = 0x1p-8f,
                                .sum = sum.as<float>(side),
                                .non_finite = non_finite.as<std::int32_t>(side),
                                .first_non_finite = first.as<std::int64_t>(side),
                                .tiny_count = tiny.as<std::int64_t>(side),
                                .workspace = scratch.at(side)};
  };
  c.bytes = static_cast<double>(x.bytes());
  c.flops = 2 * static_cast<double>(n);
  c.reference = [=] { sum_of_squares::reference::run(args(Side::host)); };
  make.variants(
      c, make.kernels().sum_of_squares, make.dtype(),
      [=](const sum_of_squares::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &sum] {
      *sum.as<float>(Side::device) = plain().sum_of_squares(x.as<float>(Side::device), x.elements());
    };
  return only(std::move(c));
}

namespace {

max_pool2d::Geometry geometry_of(CaseMaker& make) {
  return {.batch = make.extent("batch", 64),
          .height = make.extent("height", 26),
          .width = make.extent("width", 26),
          .channels = make.extent("channels", 32),
          .window = make.extent("window", 2),
          .stride = make.extent("stride", 2)};
}

KernelCase forward(CaseMaker& make) {
  const max_pool2d::Geometry g = geometry_of(make);
  KernelCase c = make.make("max_pool2d forward");
  BenchArray& x = make.input(c, make.dtype(), g.in_elements());
  BenchArray& y = make.output(c, make.dtype(), g.out_elements(), exact());
  BenchArray& codes = make.output(c, DType::u8, g.out_elements(), exact());
  const auto args = [&x, &y, &codes, g, dtype = make.dtype()](Side side) {
    return max_pool2d::ForwardArgs{
        .geometry = g, .dtype = dtype, .x = x.at(side), .y = y.at(side), .codes = codes.as<std::uint8_t>(side)};
  };
  c.bytes = static_cast<double>(x.bytes() + y.bytes() + codes.bytes());
  c.reference = [=] { max_pool2d::reference::forward(args(Side::host)); };
  make.variants(c, make.kernels().max_pool2d, make.dtype(), [=](const max_pool2d::Variant& variant, Stream& stream) {
    variant.forward(stream, args(Side::device));
  });
  return c;
}

KernelCase backward(CaseMaker& make) {
  const max_pool2d::Geometry g = geometry_of(make);
  KernelCase c = make.make("max_pool2d backward");
  BenchArray& dy = make.input(c, make.dtype(), g.out_elements());
  BenchArray& codes = make.input(c, DType::u8, g.out_elements(), 0, static_cast<double>(g.window * g.window));
  // Windows that overlap add up.
  const std::int64_t overlaps = (g.window + g.stride - 1) / g.stride;
  BenchArray& dx = make.output(c, make.dtype(), g.in_elements(),
                               roundings(make.dtype(), static_cast<double>(overlaps * overlaps - 1)));
  const auto args = [&dy, &codes, &dx, g, dtype = make.dtype()](Side side) {
    return max_pool2d::BackwardArgs{
        .geometry = g, .dtype = dtype, .dy = dy.at(side), .codes = codes.as<std::uint8_t>(side), .dx = dx.at(side)};
  };
  c.bytes = static_cast<double>(dy.bytes() + codes.bytes() + dx.bytes());
  c.reference = [=] { max_pool2d::reference::backward(args(Side::host)); };
  make.variants(c, make.kernels().max_pool2d, make.dtype(), [=](const max_pool2d::Variant& variant, Stream& stream) {
    variant.backward(stream, args(Side::device));
  });
  return c;
}

}  // namespace

Cases max_pool2d_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(forward(make));
  cases.push_back(backward(make));
  return cases;
}

}  // namespace gradring::kernels::bench
