// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// The elements of a tensor as numbers, in the file's order. Exact but for i64 and u64 beyond 2^53; true is 1. Empty for
/// types that are no plain numbers here: complex ones, and those of 8 bits and fewer with an exponent.
///
/// Cost      8 bytes an element.
std::optional<std::vector<double>> values_of(const TensorRecord& tensor);

}  // namespace gradring::train
