// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::softmax_cross_entropy {

void check_soft(std::string_view op, const SoftTargets& soft) {
  check((soft.labels_b == nullptr) == (soft.weights_b == nullptr),
        [&] { return std::string(op) + ": one of labels_b and weights_b is a null pointer, expected both or none"; });
  check(soft.label_smoothing >= 0 && soft.label_smoothing <= 1, [&] {
    return std::string(op) + ": label_smoothing is " + std::to_string(soft.label_smoothing) + ", expected 0 to 1";
  });
}

void check_args(const Args& args) {
  constexpr std::string_view kOp = "softmax_cross_entropy";
  lib::check_floating(kOp, "dtype", args.dtype);
  check_soft(kOp, args.soft);
  lib::check_at_least(kOp, 0, {{"rows", args.rows}});
  lib::check_at_least(kOp, 1, {{"classes", args.classes}});
  lib::check_pointers(kOp, {{"loss_sum", args.loss_sum}, {"correct", args.correct}});
  if (args.rows == 0) return;
  lib::check_pointers(kOp, {{"logits", args.logits}, {"labels", args.labels}, {"workspace", args.workspace}});
  if (args.dlogits)
    lib::check_same_or_apart(kOp, args.logits, args.dlogits,
                             static_cast<std::size_t>(args.rows * args.classes) * size_of(args.dtype));
}

namespace {

/// t[c] of the contract.
std::vector<double> distribution_of(const RowTarget& target, std::size_t classes) {
  std::vector<double> t(classes, target.label_smoothing / static_cast<double>(classes));
  t[static_cast<std::size_t>(target.label)] += (1 - target.label_smoothing) * (1 - target.weight_b);
  t[static_cast<std::size_t>(target.label_b)] += (1 - target.label_smoothing) * target.weight_b;
  return t;
}

}  // namespace

double reference_differentiate(std::span<double> x, const RowTarget& target, double scale, bool& right) {
  const auto is_class = [&](std::int32_t label) { return label >= 0 && static_cast<std::size_t>(label) < x.size(); };
  const bool valid = is_class(target.label) && is_class(target.label_b) && target.weight_b >= 0 && target.weight_b <= 1;
  const bool numbers = std::none_of(x.begin(), x.end(), [](double value) { return std::isnan(value); });
  if (!valid || !numbers) {
    std::fill(x.begin(), x.end(), std::numeric_limits<double>::quiet_NaN());
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto largest = std::max_element(x.begin(), x.end());  // the first of several
  const std::int64_t where = largest - x.begin();
  const double m = *largest;
  const std::vector<double> t = distribution_of(target, x.size());
  double at_target = 0, s = 0;
  for (std::size_t c = 0; c < x.size(); ++c) {
    if (t[c] > 0) at_target += t[c] * x[c];
    s += std::exp(x[c] - m);
  }
  for (std::size_t c = 0; c < x.size(); ++c) x[c] = (std::exp(x[c] - m) / s - t[c]) * scale;
  const double loss = std::log(s) + m - at_target;
  right = where == (target.weight_b > 0.5 ? target.label_b : target.label) && !std::isnan(loss);
  return loss;
}

void reference_run(const Args& args) {
  check_args(args);
  const auto rows = static_cast<std::size_t>(args.rows);
  const auto classes = static_cast<std::size_t>(args.classes);
  std::vector<double> x = lib::read_values(args.dtype, args.logits, rows * classes);
  const double scale = static_cast<double>(args.scale) * (args.loss_scale ? *args.loss_scale : 1.0f);
  double loss = 0;
  std::int32_t correct = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    bool right = false;
    loss +=
        reference_differentiate(std::span(x).subspan(r * classes, classes), {args.labels, args.soft, r}, scale, right);
    correct += right;
  }
  *args.loss_sum = static_cast<float>(loss);
  *args.correct = correct;
  if (args.dlogits) lib::write_values(args.dtype, args.dlogits, x);
}

}  // namespace gradring::kernels::softmax_cross_entropy

namespace gradring::kernels::linear_cross_entropy {
namespace {

/// Every array in double, by the names of the contract.
struct Arrays {
  std::size_t rows, in, classes;
  std::vector<double> h, w, b;
  std::vector<double> x;  // the logits; later d

  explicit Arrays(const Args& args)
      : rows(static_cast<std::size_t>(args.rows)),
        in(static_cast<std::size_t>(args.in)),
        classes(static_cast<std::size_t>(args.classes)),
        h(lib::read_values(args.dtype, args.h, rows * in)),
        w(lib::read_values(args.dtype, args.w, classes * in)),
        b(lib::read_values(args.dtype, args.b, classes)),
        x(rows * classes) {}
};

void multiply(Arrays& a) {
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < a.classes; ++c) {
      double sum = a.b[c];
      for (std::size_t i = 0; i < a.in; ++i) sum += a.h[r * a.in + i] * a.w[c * a.in + i];
      a.x[r * a.classes + c] = sum;
    }
}

void differentiate(const Arrays& a, const Args& args) {
  std::vector<double> dh(a.rows * a.in), dw(a.classes * a.in), db(a.classes);
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < a.classes; ++c) {
      const double d = a.x[r * a.classes + c];
      db[c] += d;
      for (std::size_t i = 0; i < a.in; ++i) {
        dh[r * a.in + i] += d * a.w[c * a.in + i];
        dw[c * a.in + i] += d * a.h[r * a.in + i];
      }
    }
  for (std::size_t i = 0; i < dh.size(); ++i)
    if (args.h_is_relu && !(a.h[i] > 0)) dh[i] = 0;
  lib::write_values(args.dtype, args.dh, dh);
  const auto write = [&](float* to, const std::vector<double>& sums) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      to[i] = static_cast<float>(args.accumulate ? static_cast<double>(to[i]) + sums[i] : sums[i]);
  };
  write(args.dw, dw);
  write(args.db, db);
}

}  // namespace

void check_args(const Args& args) {
  constexpr std::string_view kOp = "linear_cross_entropy";
  lib::check_floating(kOp, "dtype", args.dtype);
  softmax_cross_entropy::check_soft(kOp, args.soft);
  lib::check_at_least(kOp, 0, {{"rows", args.rows}});
  lib::check_at_least(kOp, 1, {{"in", args.in}, {"classes", args.classes}});
  check(args.classes <= kMostClasses, [&] {
    return "linear_cross_entropy: classes is " + std::to_string(args.classes) + ", expected at most " +
           std::to_string(kMostClasses) + "; for more, use gemm, bias and softmax_cross_entropy";
  });
  lib::check_pointers(kOp, {{"loss_sum", args.loss_sum}, {"correct", args.correct}});
  const bool gradient = args.dw != nullptr;
  check((args.db != nullptr) == gradient && (gradient || args.dh == nullptr),
        "linear_cross_entropy: some of dh, dw and db are null pointers, expected all of them or none");
  if (args.rows == 0) return;
  if (gradient) lib::check_pointer(kOp, "dh", args.dh);
  lib::check_pointers(
      kOp, {{"h", args.h}, {"w", args.w}, {"b", args.b}, {"labels", args.labels}, {"workspace", args.workspace}});
  if (!gradient) return;
  const std::size_t h_bytes = static_cast<std::size_t>(args.rows * args.in) * size_of(args.dtype);
  lib::check_apart(kOp, args.h, h_bytes, args.dh, h_bytes);
}

void reference_run(const Args& args) {
  check_args(args);
  const double scale = static_cast<double>(args.scale) * (args.loss_scale ? *args.loss_scale : 1.0f);
  double loss = 0;
  std::int32_t correct = 0;
  if (args.rows > 0) {
    Arrays a(args);
    multiply(a);
    if (args.logits) lib::write_values(args.dtype, args.logits, a.x);
    for (std::size_t r = 0; r < a.rows; ++r) {
      bool right = false;
      loss += softmax_cross_entropy::reference_differentiate(std::span(a.x).subspan(r * a.classes, a.classes),
                                                             {args.labels, args.soft, r}, scale, right);
      correct += right;
    }
    if (args.dw) differentiate(a, args);
  } else if (args.dw && !args.accumulate) {
    std::fill_n(args.dw, args.classes * args.in, 0.0f);
    std::fill_n(args.db, args.classes, 0.0f);
  }
  *args.loss_sum = static_cast<float>(loss);
  *args.correct = correct;
}

}  // namespace gradring::kernels::linear_cross_entropy
