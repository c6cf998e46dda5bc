// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops/tally/tally.h"

namespace gradring::train {

/// How the samples of one class were classified.
struct ClassCounts {
  std::int64_t samples = 0;    ///< of the class
  std::int64_t predicted = 0;  ///< as this class, of whatever class they are
  std::int64_t correct = 0;    ///< samples of the class that were

  bool operator==(const ClassCounts&) const = default;
};

/// Counts which samples are classified correctly, by their logits.
///
/// Numerics  a prediction is the first maximum, as in kernels::softmax_cross_entropy; with a NaN there is none.
/// Example   tests/train/core/trainer/tally_test.cpp
class Tally {
 public:
  /// What PyTorch's users call top-5 accuracy counts those whose class is among this many with the largest logits.
  static constexpr std::int64_t kTop = kernels::tally::kTop;

  explicit Tally(std::int64_t classes) : classes_(static_cast<std::size_t>(classes)) {}

  /// Adds samples. logits: [labels.size(), classes].
  void add(std::span<const double> logits, std::span<const std::int32_t> labels);

  std::int64_t samples() const;
  std::int64_t correct() const;
  /// Of equal logits those of the first classes count as larger.
  std::int64_t correct_in_top() const { return correct_in_top_; }
  std::span<const ClassCounts> classes() const { return classes_; }

  /// All counts, to be summed over ranks; set_counts is the inverse.
  std::vector<std::int64_t> counts() const;
  void set_counts(std::span<const std::int64_t> counts);

 private:
  std::int64_t correct_in_top_ = 0;
  std::vector<ClassCounts> classes_;
};

}  // namespace gradring::train
