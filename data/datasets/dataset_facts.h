// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

/// What a model needs to know of the dataset that it was trained on.
struct DatasetFacts {
  std::string name;
  kernels::Shape shape = {};                  ///< of one sample: height, width, channels
  std::vector<std::string> class_names = {};  ///< in the order of the labels
  /// What normalizes pixels scaled to 0 .. 1: y = (x - mean) / std; one value for each channel, or one for all.
  std::vector<float> mean = {0.5f};
  std::vector<float> std = {0.5f};

  int classes() const { return static_cast<int>(class_names.size()); }
  bool operator==(const DatasetFacts&) const = default;
};

/// Those of an open dataset, with the default mean and std.
DatasetFacts facts_of(const Dataset& dataset);

}  // namespace gradring::data
