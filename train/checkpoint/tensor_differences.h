// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// In which tensors a file is not what a model needs.
struct TensorDifferences {
  struct OtherShape {
    std::string name;
    std::vector<std::int64_t> expected, found;
  };
  std::vector<std::string> missing;     ///< in the order in which they were expected
  std::vector<std::string> unexpected;  ///< in the file's order
  std::vector<OtherShape> other_shape;

  bool none() const { return missing.empty() && unexpected.empty() && other_shape.empty(); }
  /// For people: "lacks 'fc1.bias'; has 'fc3.bias' that the model lacks; has 'fc1.weight' of [10, 5], not of [10, 4]". At
  /// most five of a kind are named.
  std::string to_string() const;
};

/// Compares names and shapes; types may differ.
TensorDifferences compare_tensors(std::span<const TensorInfo> expected, std::span<const TensorInfo> found);

/// Tensors without their bytes.
std::vector<TensorInfo> infos_of(std::span<const TensorRecord> tensors);

}  // namespace gradring::train
