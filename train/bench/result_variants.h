// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/bench/result_file.h"

namespace gradring::train::bench {

/// What `bench diff` shows of one file: of the rows
///
///   {"case": "gemm y = x w^T", "shape": "batch=64", "dtype": "f16", "variant": "mma", "counter": "registers"}: 155
///   {"case": "gemm y = x w^T", "shape": "batch=64", "dtype": "f16", "variant": "wmma", "counter": "registers"}: 77
///
/// one group, of the work without its variant and counter, with the variants mma and wmma and the row registers: 155, 77.

/// One quantity of several variants.
struct VariantsRow {
  MeasurementKey key;  ///< without the variant and what the rows of a group have in common
  std::string unit;
  std::vector<std::optional<double>> medians;  ///< of each variant of the group; nothing: not measured
};

/// The variants of one work, side by side. A variant that a row does not have was rejected or not measured, or the row is
/// of a library that it is compared with.
struct VariantsGroup {
  MeasurementKey work;                ///< {"case", "gemm y = x w^T"}, {"shape", ...}, {"dtype", ...}
  std::vector<std::string> variants;  ///< in the file's order
  std::vector<VariantsRow> rows;      ///< the same
};

/// The measurements of `bench kernels` by the work that variants have in common: case, shape and type.
///
/// Order     that of the file: works, their variants, their rows.
/// Errors    UsageError if no measurement has a variant.
std::vector<VariantsGroup> variants_of(const BenchResult& result);

}  // namespace gradring::train::bench
