// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/mean_curve.h"

#include <cmath>
#include <limits>

namespace gradring::train {

void MeanCurve::add(double value) {
  if (sums_.empty() || values_of_last_ == values_of_each_) {
    if (sums_.size() == kMostMeans) halve();
    sums_.emplace_back();
    values_of_last_ = 0;
  }
  ++values_of_last_;
  if (!std::isfinite(value)) return;
  sums_.back().sum += value;
  ++sums_.back().finite;
}

/// Called when the last sum is full, too.
void MeanCurve::halve() {
  for (std::size_t i = 0; i < sums_.size() / 2; ++i)
    sums_[i] = {.sum = sums_[2 * i].sum + sums_[2 * i + 1].sum,
                .finite = sums_[2 * i].finite + sums_[2 * i + 1].finite};
  sums_.resize(sums_.size() / 2);
  values_of_each_ *= 2;
}

std::vector<double> MeanCurve::means() const {
  std::vector<double> means;
  for (const auto& [sum, finite] : sums_)
    means.push_back(finite > 0 ? sum / static_cast<double>(finite) : std::numeric_limits<double>::quiet_NaN());
  return means;
}

}  // namespace gradring::train
