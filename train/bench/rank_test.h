// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace gradring::train::bench {

/// Two-sided p-value of the Mann-Whitney U test: how probable it is that two samples of one distribution differ in rank
/// at least as much as these. It assumes no distribution, but independent measurements.
///
/// Numerics  exact without ties if one sample has at most 8 values; else the normal approximation, corrected for ties and
///           continuity. These are scipy.stats.mannwhitneyu's rules (method "auto").
/// Source    Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other",
///           1947.
/// Cost      O(n log n); exact: O(n1 n2 (n1 n2 / 2)) for small samples.
/// Errors    InvalidArgument if one is empty.
double rank_test(std::span<const double> one, std::span<const double> other);

}  // namespace gradring::train::bench
