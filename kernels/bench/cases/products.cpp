// SPDX-License-Identifier: Apache-2.0
// gemm: the three products of the first linear layer, one of them accumulated, one with bias and ReLU, and the fourth
// form.
// softmax_cross_entropy: the loss, of hard and of soft labels; linear_cross_entropy: with the last layer and all
// gradients.
// peak: nothing but arithmetic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

struct Layer {
  std::int64_t batch, in, out;
};

/// `problem_of` makes a product of a layer's extents; with `relu`, there is a bias, too.
template <class ProblemOf>
KernelCase product(CaseMaker& make, const std::string& name, const ProblemOf& problem_of) {
  const std::int64_t batch = make.extent("batch", 64);
  const std::int64_t in = make.extent("in", 1600);
  const std::int64_t out = make.extent("out", 256);
  const gemm::Args problem = problem_of(Layer{batch, in, out});
  KernelCase c = make.make(name);
  BenchArray& a = make.input(c, problem.dtype, problem.m * problem.k);
  BenchArray& b = make.input(c, problem.dtype, problem.k * problem.n);
  BenchArray* const bias = problem.relu ? &make.input(c, problem.dtype, problem.n) : nullptr;
  BenchArray& result = make.sum(c, "c", problem.c_dtype, problem.m * problem.n,
                                sum_of_products(problem.c_dtype, problem.k + (bias ? 1 : 0)), problem.accumulate);
  std::size_t bytes = 0;
  for (const gemm::Variant& variant : make.kernels().gemm) bytes = std::max(bytes, variant.workspace_bytes);
  BenchArray& scratch = make.workspace(c, bytes);
  c.bytes = static_cast<double>(a.bytes() + b.bytes() + (problem.accumulate ? 2u : 1u) * result.bytes());
  c.flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  c.factors = problem.dtype;
  make.run(c, make.kernels().gemm, &gemm::Variant::run, gemm::reference_run, [&](Side side) {
    gemm::Args filled = problem;
    filled.a = a.at(side);
    filled.b = b.at(side);
    filled.c = result.at(side);
    filled.bias = bias ? bias->at(side) : nullptr;
    filled.workspace = scratch.at(side);
    return filled;
  });
  return c;
}

/// Second labels with weights, and label smoothing.
struct SoftInputs {
  BenchArray& labels_b;
  BenchArray& weights_b;

  SoftInputs(CaseMaker& make, KernelCase& c, std::int64_t rows, std::int64_t classes)
      : labels_b(make.input(c, DType::i32, rows, 0, static_cast<double>(classes))),
        weights_b(make.input(c, DType::f32, rows, 0, 1)) {}

  softmax_cross_entropy::SoftTargets at(Side side) const {
    return {
        .labels_b = labels_b.as<std::int32_t>(side), .weights_b = weights_b.as<float>(side), .label_smoothing = 0.1f};
  }
};

/// The bounds of the contract, for |h| and |b| at most 1, |w| at most `w`, and |d| at most `scale`.
struct HeadBounds {
  double rows, in, classes, w, scale;
  bool soft = false;
  double unit = 0x1p-24;

  double logit() const { return (in + 8) * unit * (in * w + 1); }
  double loss() const {
    const double terms = (soft ? 2 : 1) * (classes + 8);
    return rows * (2 * logit() + (rows + terms) * unit * (3 * (in * w + 1) + 4));
  }
  double d() const { return (2 * logit() + 2 * (classes + 8) * unit) * scale; }
  double dh() const { return classes * w * d() + (classes + 2) * unit * classes * w * scale; }
  double dw() const { return rows * d() + (rows / 64 + 66) * unit * rows * scale; }
};

enum class Head : std::uint8_t { overwrites, accumulates, soft };

std::string name_of(Head head) {
  const std::string name = "linear_cross_entropy";
  return head == Head::overwrites ? name : name + (head == Head::soft ? " soft labels" : " accumulated");
}

/// Inputs are such that logits are exact, and every variant finds the same maxima.
KernelCase linear_cross_entropy_of(CaseMaker& make, Head head) {
  const bool accumulate = head == Head::accumulates;
  constexpr double kWeight = 1.0 / 16;
  const std::int64_t rows = make.extent("rows", 64);
  const std::int64_t in = make.extent("in", 256);
  const std::int64_t classes = make.extent("classes", 10);
  KernelCase c = make.make(name_of(head));
  const DType dtype = make.dtype();
  const float scale = 1.0f / static_cast<float>(rows);
  const HeadBounds bounds{.rows = static_cast<double>(rows),
                          .in = static_cast<double>(in),
                          .classes = static_cast<double>(classes),
                          .w = kWeight,
                          .scale = scale,
                          .soft = head == Head::soft};
  BenchArray& h = make.input(c, dtype, rows * in, -1, 1, 0.25);
  BenchArray& w = make.input(c, dtype, classes * in, -kWeight, kWeight, kWeight / 4);
  BenchArray& b = make.input(c, dtype, classes, -1, 1, 0.25);
  BenchArray& labels = make.input(c, DType::i32, rows, 0, static_cast<double>(classes));
  std::optional<SoftInputs> soft;
  if (head == Head::soft) soft.emplace(make, c, rows, classes);
  BenchArray& dh = make.output(c, "dh", dtype, rows * in, roundings(dtype, 2, bounds.dh()));
  const Bound of_sums = roundings(DType::f32, 2, bounds.dw());
  BenchArray& dw = make.sum(c, "dw", DType::f32, classes * in, of_sums, accumulate);
  BenchArray& db = make.sum(c, "db", DType::f32, classes, of_sums, accumulate);
  BenchArray& loss = make.output(c, "loss", DType::f32, 1, roundings(DType::f32, 2, bounds.loss()));
  BenchArray& correct = make.output(c, "correct", DType::i32, 1, exact());
  BenchArray& scratch = make.workspace(c, linear_cross_entropy::workspace_bytes(rows, in, classes));
  c.bytes = static_cast<double>(2 * h.bytes() + dh.bytes() + 2 * w.bytes() + (accumulate ? 2u : 1u) * dw.bytes());
  c.flops = 6 * static_cast<double>(rows * in * classes);  // in f32, whatever the type: no tensor cores
  make.run(c, make.kernels().linear_cross_entropy, &linear_cross_entropy::Variant::run,
           linear_cross_entropy::reference_run, [&](Side side) {
             return linear_cross_entropy::Args{.dtype = dtype,
                                               .rows = rows,
                                               .in = in,
                                               .classes = classes,
                                               .h = h.at(side),
                                               .w = w.at(side),
                                               .b = b.at(side),
                                               .labels = labels.as<std::int32_t>(side),
                                               .soft = soft ? soft->at(side) : linear_cross_entropy::SoftTargets{},
                                               .scale = scale,
                                               .dh = dh.at(side),
                                               .dw = dw.as<float>(side),
                                               .db = db.as<float>(side),
                                               .accumulate = accumulate,
                                               .loss_sum = loss.as<float>(side),
                                               .correct = correct.as<std::int32_t>(side),
                                               .workspace = scratch.at(side)};
           });
  return c;
}

KernelCase softmax_cross_entropy_of(CaseMaker& make, bool with_soft_labels) {
  using softmax_cross_entropy::SoftTargets;
  const std::int64_t rows = make.extent("rows", 64);
  const std::int64_t classes = make.extent("classes", 10);
  const DType dtype = make.dtype();
  KernelCase c = make.make(with_soft_labels ? "softmax_cross_entropy soft labels" : "softmax_cross_entropy");
  const float scale = 1.0f / static_cast<float>(rows);
  const auto terms = static_cast<double>(classes + 8);
  const double row_error = (with_soft_labels ? 2 : 1) * terms * 0x1p-24 * (3 + std::log(static_cast<double>(classes)));
  BenchArray& logits = make.input(c, dtype, rows * classes);
  BenchArray& labels = make.input(c, DType::i32, rows, 0, static_cast<double>(classes));
  std::optional<SoftInputs> soft;
  if (with_soft_labels) soft.emplace(make, c, rows, classes);
  BenchArray& dlogits = make.output(c, "dlogits", dtype, rows * classes, roundings(dtype, 2, terms * 0x1p-23 * scale));
  const auto sum_terms = static_cast<double>(rows);
  BenchArray& loss = make.output(c, "loss", DType::f32, 1, roundings(DType::f32, sum_terms, sum_terms * row_error));
  BenchArray& correct = make.output(c, "correct", DType::i32, 1, exact());
  BenchArray& scratch = make.workspace(c, softmax_cross_entropy::workspace_bytes(rows));
  c.bytes = 2 * static_cast<double>(logits.bytes());
  const auto args = make.run(c, make.kernels().softmax_cross_entropy, &softmax_cross_entropy::Variant::run,
                             softmax_cross_entropy::reference_run, [&](Side side) {
                               return softmax_cross_entropy::Args{.dtype = dtype,
                                                                  .rows = rows,
                                                                  .classes = classes,
                                                                  .logits = logits.at(side),
                                                                  .labels = labels.as<std::int32_t>(side),
                                                                  .soft = soft ? soft->at(side) : SoftTargets{},
                                                                  .scale = scale,
                                                                  .dlogits = dlogits.at(side),
                                                                  .loss_sum = loss.as<float>(side),
                                                                  .correct = correct.as<std::int32_t>(side),
                                                                  .workspace = scratch.at(side)};
                             });
  if (make.has_plain_loops() && !with_soft_labels)
    c.plain_loop = [args] {
      const auto width = static_cast<std::size_t>(args.classes);
      *args.loss_sum = 0;
      for (std::size_t r = 0; r < static_cast<std::size_t>(args.rows); ++r)
        *args.loss_sum += plain().softmax_cross_entropy(static_cast<const float*>(args.logits) + r * width,
                                                        static_cast<float*>(args.dlogits) + r * width, width,
                                                        static_cast<std::size_t>(args.labels[r]), args.scale);
    };
  return c;
}

}  // namespace

Cases gemm_cases(CaseMaker& make) {
  const DType dtype = make.dtype();
  Cases cases;
  cases.push_back(product(make, "gemm y = x w^T", [&](const Layer& l) -> gemm::Args {
    return {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.out, .k = l.in, .transpose_b = true};
  }));
  cases.push_back(product(make, "gemm y = relu(x w^T + b)", [&](const Layer& l) -> gemm::Args {
    return {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.out, .k = l.in, .transpose_b = true, .relu = true};
  }));
  cases.push_back(product(make, "gemm dx = dy w", [&](const Layer& l) -> gemm::Args {
    return {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.in, .k = l.out};
  }));
  for (const bool accumulate : {false, true})
    cases.push_back(
        product(make, accumulate ? "gemm dw += dy^T x" : "gemm dw = dy^T x", [&](const Layer& l) -> gemm::Args {
          return {.dtype = dtype,
                  .c_dtype = DType::f32,
                  .m = l.out,
                  .n = l.in,
                  .k = l.batch,
                  .transpose_a = true,
                  .accumulate = accumulate};
        }));
  cases.push_back(product(make, "gemm a^T b^T", [&](const Layer& l) -> gemm::Args {  // no layer has it
    return {.dtype = dtype,
            .c_dtype = dtype,
            .m = l.batch,
            .n = l.out,
            .k = l.in,
            .transpose_a = true,
            .transpose_b = true};
  }));
  return cases;
}

Cases softmax_cross_entropy_cases(CaseMaker& make) {
  return cases_with<bool>(make, {false, true}, softmax_cross_entropy_of);
}

Cases linear_cross_entropy_cases(CaseMaker& make) {
  return cases_with<Head>(make, {Head::overwrites, Head::accumulates, Head::soft}, linear_cross_entropy_of);
}

Cases peak_cases(CaseMaker& make) {
  const std::int64_t tiles = make.extent("tiles", 256);
  const std::int64_t rounds = make.extent("rounds", 64);
  const DType dtype = make.dtype();
  KernelCase c = make.make("peak");
  BenchArray& a = make.input(c, dtype, peak::kRows * peak::kK);
  BenchArray& b = make.input(c, dtype, peak::kK * peak::kColumns);
  BenchArray& y = make.input(c, DType::f32, tiles * peak::kRows * peak::kColumns);
  CaseMaker::also_output(c, "y", y, [rounds](double expected) {
    return 32 * static_cast<double>(rounds) * 0x1p-24 * (std::fabs(expected) + 17);  // before, |y| is at most 1
  });
  c.bytes = 2 * static_cast<double>(y.bytes());
  c.factors = dtype;
  const auto args = make.run(c, make.kernels().peak, &peak::Variant::run, peak::reference_run, [&](Side side) {
    return peak::Args{
        .dtype = dtype, .tiles = tiles, .rounds = rounds, .a = a.at(side), .b = b.at(side), .y = y.as<float>(side)};
  });
  c.flops = peak::flops(args);
  return only(std::move(c));
}

}  // namespace gradring::kernels::bench
