// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>

#include "data/datasets/dataset.h"
#include "data/loader/batch.h"
#include "data/transforms/normalize.h"

namespace gradring::data {

/// Gathers the samples `indices` of a data set into the front of a slot's memory, normalised.
///
/// Returns   false if it was stopped before the end.
/// Errors    InvalidArgument for an index outside the data set; what the data set throws.
/// Cost      per sample, its bytes read and four times as many written; the next samples' memory is asked for beforehand,
///           since shuffled rows of a set larger than the caches come from far away.
bool fill_batch(const Dataset& dataset, const Normalize& normalize, std::span<const std::int64_t> indices,
                BatchSlot& slot, const std::stop_token& stop);

}  // namespace gradring::data
