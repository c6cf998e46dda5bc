// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// What the numbers of a tensor are like. Least, most, mean and deviation are those of the finite ones; 0 if there are
/// none.
struct TensorStatistics {
  std::int64_t elements = 0;
  std::int64_t non_finite = 0;  ///< infinite, or no number
  double least = 0;
  double most = 0;
  double mean = 0;
  double deviation = 0;  ///< standard, over all elements
};

/// Empty where values_of is.
std::optional<TensorStatistics> statistics_of(const TensorRecord& tensor);

/// How far two tensors are apart. Elements with the same bits are equal, and so are two that are no numbers, and 0 and -0.
struct TensorDistance {
  std::int64_t different = 0;  ///< elements
  double absolute = 0;         ///< the largest |a - b| of finite elements
  double relative = 0;         ///< the largest |a - b| / max(|a|, |b|) of them
  double cosine = 1;           ///< of the angle between both, as vectors; of zeros only, 1
};

/// Of two tensors of one shape; their types may differ. Empty where values_of is.
std::optional<TensorDistance> distance_between(const TensorRecord& a, const TensorRecord& b);

}  // namespace gradring::train
