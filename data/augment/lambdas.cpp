// SPDX-License-Identifier: Apache-2.0
#include "data/augment/lambdas.h"

#include <cmath>
#include <cstddef>
#include <span>

namespace gradring::data {
namespace {

using kernels::gather_batch::Augmentation;
using kernels::gather_batch::kLambdas;
using kernels::gather_batch::kWholeWeight;

/// Half of the distribution, x in 0 to 1/2, by a parameter s in 0 to 1 in which the density is bounded: x = s / 2, or,
/// for alpha below 1, where it grows without end at 0, x = s^(1 / alpha) / 2.
class HalfBeta {
 public:
  explicit HalfBeta(double alpha) : alpha_(alpha), below_(kCells + 1) {
    double last = density(0);
    for (std::size_t i = 1; i < below_.size(); ++i) {
      const double next = density(s_of(i));
      below_[i] = below_[i - 1] + (last + next) / 2;
      last = next;
    }
  }

  /// x whose probability, below 1/2, is p.
  double quantile(double p) {
    const double target = 2 * p * below_.back();
    while (below_[cell_ + 1] < target) ++cell_;  // p grows from call to call
    const double within = (target - below_[cell_]) / (below_[cell_ + 1] - below_[cell_]);
    return x_of(s_of(cell_) + within / kCells);
  }

 private:
  static constexpr std::size_t kCells = 1 << 14;
  static double s_of(std::size_t i) { return static_cast<double>(i) / kCells; }

  double x_of(double s) const { return (alpha_ < 1 ? std::pow(s, 1 / alpha_) : s) / 2; }
  /// By s, up to a factor.
  double density(double s) const {
    const double x = x_of(s);
    return alpha_ < 1 ? std::pow(1 - x, alpha_ - 1) : std::pow(4 * x * (1 - x), alpha_ - 1);
  }

  double alpha_;
  std::vector<double> below_;
  std::size_t cell_ = 0;
};

/// The distribution is symmetric.
void append(std::vector<std::int32_t>& lambdas, int alpha) {
  HalfBeta half(static_cast<double>(alpha) / Augmentation::kWholeAlpha);
  const std::size_t first = lambdas.size();
  lambdas.resize(first + kLambdas);
  const std::span table = std::span(lambdas).subspan(first);
  for (std::size_t i = 0; i < kLambdas / 2; ++i) {
    table[i] =
        static_cast<std::int32_t>(std::lround(half.quantile((static_cast<double>(i) + 0.5) / kLambdas) * kWholeWeight));
    table[kLambdas - 1 - i] = kWholeWeight - table[i];
  }
}

}  // namespace

std::vector<std::int32_t> lambdas_of(const Augmentation& what) {
  std::vector<std::int32_t> lambdas;
  for (const int alpha : {what.mixup, what.cutmix})
    if (alpha > 0) append(lambdas, alpha);
  return lambdas;
}

}  // namespace gradring::data
