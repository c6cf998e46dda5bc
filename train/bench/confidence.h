// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gradring::train::bench {

/// A sample of a quantity whose values are taken to be normally distributed.
struct MeanOf {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;   ///< sample standard deviation (divisor count - 1); 0 for one value
  double half_width = 0;  ///< of the 95 % confidence interval of the mean, by Student's t; infinite for one value
};

/// Mean, deviation and confidence of these values.
///
///   mean        sum x_i / n
///   deviation   sqrt(sum (x_i - mean)^2 / (n - 1))
///   half_width  student_t(n - 1) * deviation / sqrt(n)
///
/// The interval holds the mean of the distribution in 95 of 100 such samples, if the values are normally distributed.
///
/// Errors    InvalidArgument if there are no values.
/// Numerics  in f64, around the mean: no cancellation.
/// Source    Student, "The probable error of a mean", Biometrika 6 (1908).
/// Example   tests/train/bench/confidence_test.cpp
MeanOf mean_of(std::span<const double> values);

/// The confidence interval for people: "± 0.173"; "-" of one value.
std::string interval_text(const MeanOf& of);

/// The 0.975 quantile of Student's t distribution: 12.706 for 1 degree of freedom, 1.960 for infinitely many.
///
/// Numerics  exact to three digits behind the point up to 30 degrees, then off by less than 0.001: the first terms of the
///           expansion of Cornish and Fisher. Infinite for 0 degrees.
double student_t(std::size_t degrees);

}  // namespace gradring::train::bench
