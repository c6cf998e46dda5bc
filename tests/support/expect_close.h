// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

namespace gradring::tests {

/// Fails, with the first place and the number of places, unless |actual[i] - expected[i]| <= bound(i) everywhere. NaN
/// equals NaN alone, and infinities equal themselves.
void expect_close(std::span<const double> actual, std::span<const double> expected,
                  const std::function<double(std::size_t)>& bound);

/// The same with no error allowed.
void expect_equal(std::span<const double> actual, std::span<const double> expected);

/// Compares `gradient` with central differences of `function` at `at`, one argument after the other, as far as `limit`
/// arguments (spread evenly).
void expect_gradient(const std::function<double(std::span<const double>)>& function, std::span<const double> at,
                     std::span<const double> gradient, double step, double tolerance, std::size_t limit = 200);

}  // namespace gradring::tests
