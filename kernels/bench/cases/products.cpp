// SPDX-License-Identifier: Apache-2.0
// gemm: the three products of the first linear layer.
// linear_cross_entropy: the last layer with its loss and all their gradients.
// peak: nothing but arithmetic.

#include <algorithm>
#include <cmath>

#include "kernels/bench/kernel_case.h"

namespace gradring::kernels::bench {
namespace {

KernelCase product(CaseMaker& make, const std::string& name, const gemm::Args& problem) {
  KernelCase c = make.make(name);
  BenchArray& a = make.input(c, problem.dtype, problem.m * problem.k);
  BenchArray& b = make.input(c, problem.dtype, problem.k * problem.n);
  BenchArray& out = make.output(c, problem.c_dtype, problem.m * problem.n, sum_of_products(problem.c_dtype, problem.k));
  std::size_t bytes = 0;
  for (const gemm::Variant& variant : make.kernels().gemm) bytes = std::max(bytes, variant.workspace_bytes);
  BenchArray& scratch = make.workspace(c, bytes);
  const auto args = [&a, &b, &out, &scratch, problem](Side side) {
    gemm::Args filled = problem;
    filled.a = a.at(side);
    filled.b = b.at(side);
    filled.c = out.at(side);
    filled.workspace = scratch.at(side);
    return filled;
  };
  c.bytes = static_cast<double>(a.bytes() + b.bytes() + out.bytes());
  c.flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  c.factors = problem.dtype;
  c.reference = [=] { gemm::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().gemm, problem.dtype,
                [=](const gemm::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

struct Layer {
  std::int64_t batch, in, out;
};

Layer layer_of(CaseMaker& make) { return {make.extent("batch", 64), make.extent("in", 1600), make.extent("out", 256)}; }

}  // namespace

Cases gemm_cases(CaseMaker& make) {
  const DType dtype = make.dtype();
  Cases cases;
  Layer l = layer_of(make);
  cases.push_back(
      product(make, "gemm y = x w^T",
              {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.out, .k = l.in, .transpose_b = true}));
  l = layer_of(make);
  cases.push_back(
      product(make, "gemm dx = dy w", {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.in, .k = l.out}));
  l = layer_of(make);
  cases.push_back(
      product(make, "gemm dw = dy^T x",
              {.dtype = dtype, .c_dtype = DType::f32, .m = l.out, .n = l.in, .k = l.batch, .transpose_a = true}));
  return cases;
}

namespace {

/// The bounds of the contract, for |h| and |b| at most 1, |w| at most `w`, and |d| at most `scale`.
struct HeadBounds {
  double rows, in, classes, w, scale;
  double unit = 0x1p-24;

  double logit() const { return (in + 8) * unit * (in * w + 1); }
  double loss() const { return rows * (2 * logit() + (rows + classes + 8) * unit * (3 * (in * w + 1) + 4)); }
  double d() const { return (2 * logit() + 2 * (classes + 8) * unit) * scale; }
  double dh() const { return classes * w * d() + (classes + 2) * unit * classes * w * scale; }
  double dw() const { return rows * d() + (rows / 64 + 66) * unit * rows * scale; }
};

}  // namespace

Cases linear_cross_entropy_cases(CaseMaker& make) {
  constexpr double kWeight = 1.0 / 16;
  const std::int64_t rows = make.extent("rows", 64);
  const std::int64_t in = make.extent("in", 256);
  const std::int64_t classes = make.extent("classes", 10);
  KernelCase c = make.make("linear_cross_entropy");
  const DType dtype = make.dtype();
  const float scale = 1.0f / static_cast<float>(rows);
  const HeadBounds bounds{.rows = static_cast<double>(rows),
                          .in = static_cast<double>(in),
                          .classes = static_cast<double>(classes),
                          .w = kWeight,
                          .scale = scale};
  BenchArray& h = make.input(c, dtype, rows * in);
  BenchArray& w = make.input(c, dtype, classes * in, -kWeight, kWeight);
  BenchArray& b = make.input(c, dtype, classes);
  BenchArray& labels = make.input(c, DType::i32, rows, 0, static_cast<double>(classes));
  BenchArray& dh = make.output(c, dtype, rows * in, roundings(dtype, 2, bounds.dh()));
  BenchArray& dw = make.output(c, DType::f32, classes * in, roundings(DType::f32, 2, bounds.dw()));
  BenchArray& db = make.output(c, DType::f32, classes, roundings(DType::f32, 2, bounds.dw()));
  BenchArray& loss = make.output(c, DType::f32, 1, roundings(DType::f32, 2, bounds.loss()));
  BenchArray& correct = make.workspace(c, sizeof(std::int32_t));  // two classes may be too close to tell
  BenchArray& scratch = make.workspace(c, linear_cross_entropy::workspace_bytes(rows, classes));
  const auto args = [&h, &w, &b, &labels, &dh, &dw, &db, &loss, &correct, &scratch, rows, in, classes, scale,
                     dtype](Side side) {
    return linear_cross_entropy::Args{.dtype = dtype,
                                      .rows = rows,
                                      .in = in,
                                      .classes = classes,
                                      .h = h.at(side),
                                      .w = w.at(side),
                                      .b = b.at(side),
                                      .labels = labels.as<std::int32_t>(side),
                                      .scale = scale,
                                      .dh = dh.at(side),
                                      .dw = dw.as<float>(side),
                                      .db = db.as<float>(side),
                                      .loss_sum = loss.as<float>(side),
                                      .correct = correct.as<std::int32_t>(side),
                                      .workspace = scratch.at(side)};
  };
  c.bytes = static_cast<double>(2 * h.bytes() + dh.bytes() + 2 * w.bytes() + dw.bytes());
  c.flops = 6 * static_cast<double>(rows * in * classes);  // in f32, whatever the type: no tensor cores
  c.reference = [=] { linear_cross_entropy::reference::run(args(Side::host)); };
  make.variants(
      c, make.kernels().linear_cross_entropy, dtype,
      [=](const linear_cross_entropy::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  return only(std::move(c));
}

Cases peak_cases(CaseMaker& make) {
  const std::int64_t tiles = make.extent("tiles", 256);
  const std::int64_t rounds = make.extent("rounds", 64);
  KernelCase c = make.make("peak");
  BenchArray& a = make.input(c, make.dtype(), peak::kRows * peak::kInner);
  BenchArray& b = make.input(c, make.dtype(), peak::kInner * peak::kColumns);
  BenchArray& y = make.input(c, DType::f32, tiles * peak::kRows * peak::kColumns);
  CaseMaker::also_output(c, y, [rounds](double expected) {
    return 32 * static_cast<double>(rounds) * 0x1p-24 * (std::fabs(expected) + 17);  // before, |y| is at most 1
  });
  const auto args = [&a, &b, &y, tiles, rounds, dtype = make.dtype()](Side side) {
    return peak::Args{
        .dtype = dtype, .tiles = tiles, .rounds = rounds, .a = a.at(side), .b = b.at(side), .y = y.as<float>(side)};
  };
  c.bytes = 2 * static_cast<double>(y.bytes());
  c.flops = peak::flops(args(Side::device));
  c.factors = make.dtype();
  c.reference = [=] { peak::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().peak, make.dtype(),
                [=](const peak::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  return only(std::move(c));
}

}  // namespace gradring::kernels::bench
