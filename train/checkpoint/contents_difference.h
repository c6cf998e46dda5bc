// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/tensor_statistics.h"

namespace gradring::train {

/// A tensor that is not the same in two files.
struct DifferentTensor {
  std::string name;
  std::optional<TensorInfo> a, b;          ///< empty where a file lacks it
  std::optional<TensorDistance> distance;  ///< empty where the shapes differ, or the types are no numbers
};

/// Those that differ in anything, a type or a bit, in a's order and then b's. `a` and `b` may lie in any order.
std::vector<DifferentTensor> different_tensors(std::span<const TensorRecord> a, std::span<const TensorRecord> b);

/// What is said beside the tensors and differs: {"/progress/steps", "2", "4"}.
struct DifferentFact {
  std::string what;
  std::string a, b;  ///< as JSON; empty where it is not said
};

/// Of step, score and `about`, whose settings are compared line by line. How long a run took is no difference.
std::vector<DifferentFact> different_facts(const Checkpoint& a, const Checkpoint& b);

}  // namespace gradring::train
