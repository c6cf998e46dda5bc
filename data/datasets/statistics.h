// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "data/datasets/dataset.h"

namespace gradring::data {

struct DatasetStatistics {
  std::vector<std::int64_t> samples_of_class;
  std::vector<double> mean = {};  ///< by channel, of pixels scaled to [0, 1]
  std::vector<double> std = {};   ///< the same; over all pixels, not a sample's estimate
};

/// What a data set holds, by counting.
///
/// Errors    InvalidArgument if it is empty.
/// Numerics  sums are whole numbers: exact, in whatever order.
/// Cost      reads every pixel once.
DatasetStatistics statistics_of(const Dataset& dataset);

}  // namespace gradring::data
