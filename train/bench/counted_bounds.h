// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"
#include "train/bench/result_file.h"

namespace gradring::train::bench {

/// The bounds of the time that a simulated GPU counted for variants (docs/counters.md): what a card of that kind cannot be
/// faster than. A shorter time means that the variant did not do its work when it was timed, or that the bound is wrong.
class CountedBounds {
 public:
  /// Machine instructions are estimated, so a time is impossible only below this fraction of its bound.
  static constexpr double kTolerance = 0.9;

  CountedBounds() = default;
  /// `result`: of bench kernels --simulate-gpu CARD --counters -J.
  ///
  /// Errors    UsageError if it has no bounds.
  explicit CountedBounds(const BenchResult& result);

  /// Why the times of a variant are impossible; empty if they are not, or its bound is unknown. Hot calls may find their
  /// data in caches, so that only the bound of their instructions holds.
  std::string contradiction(const kernels::bench::KernelCase& c, const kernels::bench::Measured& measured) const;

 private:
  std::map<MeasurementKey, double> microseconds_;  // by case, shape, dtype, variant and counter
};

}  // namespace gradring::train::bench
