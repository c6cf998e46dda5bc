// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels::softmax_cross_entropy {

void check_args(const Args& args) {
  constexpr std::string_view kOp = "softmax_cross_entropy";
  lib::check_floating(kOp, "dtype", args.dtype);
  lib::check_at_least(kOp, 0, {{"rows", args.rows}});
  lib::check_at_least(kOp, 1, {{"classes", args.classes}});
  lib::check_pointers(kOp, {{"loss_sum", args.loss_sum}, {"correct", args.correct}});
  if (args.rows == 0) return;
  lib::check_pointers(kOp, {{"logits", args.logits}, {"labels", args.labels}, {"workspace", args.workspace}});
  if (args.dlogits)
    lib::check_same_or_apart(kOp, args.logits, args.dlogits,
                             static_cast<std::size_t>(args.rows * args.classes) * size_of(args.dtype));
}

namespace reference {

double differentiate(std::span<double> x, std::int32_t label, double scale, bool& right) {
  const bool valid = label >= 0 && static_cast<std::size_t>(label) < x.size();
  const bool numbers = std::none_of(x.begin(), x.end(), [](double value) { return std::isnan(value); });
  if (!valid || !numbers) {
    std::fill(x.begin(), x.end(), std::numeric_limits<double>::quiet_NaN());
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto largest = std::max_element(x.begin(), x.end());  // the first of several
  const std::int64_t where = largest - x.begin();
  const double m = *largest;
  const double at_label = x[static_cast<std::size_t>(label)];
  double s = 0;
  for (double value : x) s += std::exp(value - m);
  for (std::size_t c = 0; c < x.size(); ++c)
    x[c] = (std::exp(x[c] - m) / s - (c == static_cast<std::size_t>(label) ? 1 : 0)) * scale;
  const double loss = std::log(s) + m - at_label;
  right = where == label && !std::isnan(loss);
  return loss;
}

void run(const Args& args) {
  check_args(args);
  const auto rows = static_cast<std::size_t>(args.rows);
  const auto classes = static_cast<std::size_t>(args.classes);
  std::vector<double> x = lib::read_values(args.dtype, args.logits, rows * classes);
  const double scale = static_cast<double>(args.scale) * (args.loss_scale ? *args.loss_scale : 1.0f);
  double loss = 0;
  std::int32_t correct = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    bool right = false;
    loss += differentiate(std::span(x).subspan(r * classes, classes), args.labels[r], scale, right);
    correct += right;
  }
  *args.loss_sum = static_cast<float>(loss);
  *args.correct = correct;
  if (args.dlogits) lib::write_values(args.dtype, args.dlogits, x);
}

}  // namespace reference
}  // namespace gradring::kernels::softmax_cross_entropy
