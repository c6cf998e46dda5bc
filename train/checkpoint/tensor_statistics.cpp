// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>

#include "kernels/runtime/error.h"
#include "train/checkpoint/tensor_values.h"

namespace gradring::train {
namespace {

double deviation_of(const std::vector<double>& values, double mean) {
  double squares = 0;
  std::int64_t count = 0;
  for (const double value : values)
    if (std::isfinite(value)) {
      squares += (value - mean) * (value - mean);
      ++count;
    }
  return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void compare(double a, double b, TensorDistance& distance) {
  if (same(a, b)) return;
  ++distance.different;
  if (!std::isfinite(a) || !std::isfinite(b)) return;
  const double apart = std::abs(a - b);
  distance.absolute = std::max(distance.absolute, apart);
  distance.relative = std::max(distance.relative, apart / std::max(std::abs(a), std::abs(b)));
}

double cosine_of(const std::vector<double>& a, const std::vector<double>& b) {
  double both = 0, squares_of_a = 0, squares_of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    both += a[i] * b[i];
    squares_of_a += a[i] * a[i];
    squares_of_b += b[i] * b[i];
  }
  if (squares_of_a == 0 && squares_of_b == 0) return 1;
  if (squares_of_a == 0 || squares_of_b == 0) return 0;
  return both / std::sqrt(squares_of_a) / std::sqrt(squares_of_b);
}

}  // namespace

std::optional<TensorStatistics> statistics_of(const TensorRecord& tensor) {
  const auto values = values_of(tensor);
  if (!values) return std::nullopt;
  TensorStatistics found{.elements = static_cast<std::int64_t>(values->size())};
  double sum = 0;
  bool any = false;
  for (const double value : *values) {
    if (!std::isfinite(value)) {
      ++found.non_finite;
      continue;
    }
    found.least = any ? std::min(found.least, value) : value;
    found.most = any ? std::max(found.most, value) : value;
    sum += value;
    any = true;
  }
  if (any) found.mean = sum / static_cast<double>(found.elements - found.non_finite);
  found.deviation = deviation_of(*values, found.mean);
  return found;
}

std::optional<TensorDistance> distance_between(const TensorRecord& a, const TensorRecord& b) {
  check(a.shape == b.shape, "tensors of different shapes have no distance");
  const auto values_of_a = values_of(a), values_of_b = values_of(b);
  if (!values_of_a || !values_of_b) return std::nullopt;
  TensorDistance distance;
  for (std::size_t i = 0; i < values_of_a->size(); ++i) compare((*values_of_a)[i], (*values_of_b)[i], distance);
  if (distance.different > 0) distance.cosine = cosine_of(*values_of_a, *values_of_b);
  return distance;
}

}  // namespace gradring::train
