// SPDX-License-Identifier: Apache-2.0
#include "train/bench/rank_test.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::train::bench {
namespace {

/// The largest smaller sample of the exact distribution, as scipy's.
constexpr std::size_t kMostExact = 8;

struct RankSum {
  double of_one = 0;  ///< ranks of the first sample's values among all, from 1; equal values share their mean rank
  double ties = 0;    ///< sum of t^3 - t over groups of t equal values
};

RankSum rank_sum(std::span<const double> one, std::span<const double> other) {
  std::vector<std::pair<double, bool>> all;  // whether it is of the first sample
  for (const double value : one) all.emplace_back(value, true);
  for (const double value : other) all.emplace_back(value, false);
  std::ranges::sort(all);
  RankSum sum;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].first == all[begin].first) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    const auto tied = static_cast<double>(end - begin);
    sum.ties += tied * tied * tied - tied;
    for (std::size_t i = begin; i < end; ++i) sum.of_one += all[i].second ? rank : 0;
  }
  return sum;
}

/// P(U >= u) without ties. ways[i][u]: orders of i values of one sample and j of the other with statistic u; each order
/// ends with a value of either: N(i, j, u) = N(i - 1, j, u - j) + N(i, j - 1, u).
double exact_tail(std::size_t i_most, std::size_t j_most, double u) {
  const std::size_t u_most = i_most * j_most;
  std::vector<std::vector<double>> ways(i_most + 1, std::vector<double>(u_most + 1, 0));
  for (auto& row : ways) row[0] = 1;  // j = 0
  for (std::size_t j = 1; j <= j_most; ++j)
    for (std::size_t i = 1; i <= i_most;
         ++i)  // ways[i] is N(i, j - 1, .) until here, ways[i - 1] already N(i - 1, j, .)
      for (std::size_t k = j; k <= u_most; ++k) ways[i][k] += ways[i - 1][k - j];
  double all = 0, tail = 0;
  for (std::size_t k = 0; k <= u_most; ++k) {
    all += ways[i_most][k];
    if (static_cast<double>(k) >= u) tail += ways[i_most][k];
  }
  return tail / all;
}

/// The same by the normal distribution.
double normal_tail(double n1, double n2, double u, double ties) {
  const double n = n1 + n2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 0.5;  // all values are equal
  return 0.5 * std::erfc((u - n1 * n2 / 2 - 0.5) / std::sqrt(variance) / std::sqrt(2.0));
}

}  // namespace

double rank_test(std::span<const double> one, std::span<const double> other) {
  check(!one.empty() && !other.empty(), "the rank test needs values on both sides");
  const auto n1 = static_cast<double>(one.size());
  const auto n2 = static_cast<double>(other.size());
  const RankSum sum = rank_sum(one, other);
  const double u1 = sum.of_one - n1 * (n1 + 1) / 2;
  const double u = std::max(u1, n1 * n2 - u1);
  const bool exact = sum.ties == 0 && std::min(one.size(), other.size()) <= kMostExact;
  const double tail = exact ? exact_tail(std::min(one.size(), other.size()), std::max(one.size(), other.size()), u)
                            : normal_tail(n1, n2, u, sum.ties);
  return std::min(1.0, 2 * tail);
}

}  // namespace gradring::train::bench
