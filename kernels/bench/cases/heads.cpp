// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy: the last layer with its loss and all their gradients.
#include "kernels/bench/case_families.h"

namespace gradring::kernels::bench {
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

}  // namespace gradring::kernels::bench
