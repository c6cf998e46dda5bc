// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/bench/result_file.h"

namespace gradring::train::bench {

/// One quantity of several variants.
struct VariantsRow {
  MeasurementKey key;  ///< without the variant and what the rows of a group have in common
  std::string unit;
  std::vector<std::optional<double>> medians;  ///< of each variant of the group; nothing: not measured
};

/// The variants of one work, side by side.
struct VariantsGroup {
  MeasurementKey work;                ///< {"case", "gemm y = x w^T"}, {"shape", ...}, {"dtype", ...}
  std::vector<std::string> variants;  ///< in the file's order
  std::vector<VariantsRow> rows;      ///< the same
};

/// The measurements of `bench kernels` by the work that variants have in common: case, shape and type.
///
/// Errors    UsageError if no measurement has a variant.
std::vector<VariantsGroup> variants_of(const BenchResult& result);

}  // namespace gradring::train::bench
