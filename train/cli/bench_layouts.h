// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench layouts`: one training by every combination of ranks, accumulation, ZeRO and recomputation, compared.
///
/// Errors    UsageError; ReplicaError if a layout does not come out as it must, after the whole table.
void bench_layouts(std::span<const std::string> args);

}  // namespace gradring::train
