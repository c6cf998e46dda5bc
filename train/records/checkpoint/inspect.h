// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/records/checkpoint/checkpoint.h"

namespace gradring::train {

/// The distribution of a tensor's values, for `gradring ckpt inspect`. Minimum, maximum, mean and deviation cover the
/// finite values only; they are 0 if there are none.
struct TensorStatistics {
  std::int64_t elements = 0;
  std::int64_t non_finite = 0;
  double least = 0;
  double most = 0;
  double mean = 0;
  double deviation = 0;  ///< population standard deviation
};

/// Empty where values_of is.
std::optional<TensorStatistics> statistics_of(const TensorRecord& tensor);

/// How far two tensors are apart. Elements with equal bits are equal; so are two NaNs, and 0 and -0.
struct TensorDistance {
  std::int64_t different = 0;   ///< elements
  std::int64_t non_finite = 0;  ///< those of them that are NaN or infinite in a or b
  double absolute = 0;          ///< the largest |a - b| of the others
  double relative = 0;          ///< the largest |a - b| / max(|a|, |b|) of the others
  /// Of the angle between the two vectors of elements that are finite in both; 1 if both are zero; empty if there are
  /// none.
  std::optional<double> cosine = 1;
};

/// `a` and `b` have one shape; their types may differ. Empty where values_of is.
std::optional<TensorDistance> distance_between(const TensorRecord& a, const TensorRecord& b);

/// A tensor that differs between two checkpoints, for `gradring ckpt diff`.
struct DifferentTensor {
  std::string name;
  std::optional<TensorInfo> a, b;          ///< empty where a checkpoint lacks it
  std::optional<TensorDistance> distance;  ///< empty where the shapes differ or values_of is empty
};

/// The tensors that differ in type, shape or any bit: those of `a` in its order, then those that only `b` has.
std::vector<DifferentTensor> different_tensors(std::span<const TensorRecord> a, std::span<const TensorRecord> b);

/// A value beside the tensors that differs: {"/progress/steps", "2", "4"}.
struct DifferentFact {
  std::string what;
  std::string a, b;  ///< as JSON; empty if absent
};

/// Compares step, score and `about`; its settings line by line. Ignores how long the run took.
std::vector<DifferentFact> different_facts(const Checkpoint& a, const Checkpoint& b);

}  // namespace gradring::train
