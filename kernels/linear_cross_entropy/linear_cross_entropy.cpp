// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/lib/reference.h"
#include "kernels/runtime/error.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

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
  lib::check_at_least(kOp, 0, {{"rows", args.rows}});
  lib::check_at_least(kOp, 1, {{"in", args.in}, {"classes", args.classes}});
  check(args.classes <= kMostClasses, "linear_cross_entropy: " + std::to_string(args.classes) + " classes: at most " +
                                          std::to_string(kMostClasses) +
                                          "; for more, use gemm, bias and softmax_cross_entropy");
  lib::check_pointers(kOp, {{"loss_sum", args.loss_sum}, {"correct", args.correct}});
  const bool gradient = args.dw != nullptr;
  check((args.db != nullptr) == gradient && (gradient || args.dh == nullptr),
        "linear_cross_entropy: dh, dw and db belong together: all or none");
  if (args.rows == 0) return;
  if (gradient) lib::check_pointer(kOp, "dh", args.dh);
  lib::check_pointers(
      kOp, {{"h", args.h}, {"w", args.w}, {"b", args.b}, {"labels", args.labels}, {"workspace", args.workspace}});
  if (!gradient) return;
  const std::size_t h_bytes = static_cast<std::size_t>(args.rows * args.in) * size_of(args.dtype);
  lib::check_apart(kOp, args.h, h_bytes, args.dh, h_bytes);
}

namespace reference {

void run(const Args& args) {
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
      loss += softmax_cross_entropy::reference::differentiate(std::span(a.x).subspan(r * a.classes, a.classes),
                                                              args.labels[r], scale, right);
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

}  // namespace reference
}  // namespace gradring::kernels::linear_cross_entropy
