// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops/gather_batch/mix.h"

namespace gradring::data {

/// What mix_of takes its lambdas from: kLambdas quantiles of Beta(alpha, alpha), at probabilities (i + 1/2) / kLambdas,
/// rounded to 1 / kWholeWeight; for mixup, then for cutmix, for those of the two that are on.
///
/// Numerics  within 1 / kWholeWeight of the distribution's quantile.
/// Cost      about a millisecond for a distribution.
/// Example   tests/data/augment/lambdas_test.cpp
std::vector<std::int32_t> lambdas_of(const kernels::gather_batch::Augmentation& what);

}  // namespace gradring::data
