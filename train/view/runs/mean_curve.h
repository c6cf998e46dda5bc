// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace gradring::train {

/// The course of any number of values, in bounded memory: the values themselves, or the means of 2, 4, 8, ... values
/// that follow each other. Values that are not finite are left out of a mean.
///
/// Cost      constant for each value; memory for kMostMeans means.
class MeanCurve {
 public:
  static constexpr std::size_t kMostMeans = 2048;

  void add(double value);
  /// In the order of the values; NaN for a mean of none. The last mean may be of fewer values than the others.
  std::vector<double> means() const;

 private:
  struct Sum {
    double sum = 0;
    std::size_t finite = 0;
  };

  void halve();

  std::vector<Sum> sums_;
  std::size_t values_of_each_ = 1;
  std::size_t values_of_last_ = 0;
};

}  // namespace gradring::train
