// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/program/activation_memory.h"
#include "nn/program/model_plans.h"

namespace gradring::nn {

/// What activation_memory.h asks for, of a model's plans.
std::vector<StageBytes> bytes_of(const std::vector<PlannedStage>& stages, const BatchShards& shards);

/// The segments of the stages from `first`.
///
/// Errors    as choose_segments.
Segmentation segments_of(const ModelPlans& plans, std::span<const StageBytes> bytes, std::size_t first,
                         const Checkpointing& checkpointing);

/// Whether a later stage has already written a gradient of what the stage reads, so that its own is added to it.
bool adds_dx(const ModelPlans& plans, std::size_t stage, std::span<const std::size_t> last_readers);
/// The same of its second input.
bool adds_dresidual(const ModelPlans& plans, std::size_t stage, std::span<const std::size_t> last_readers);

/// Positions of the gradients of the stages' outputs, then of summands. A gradient lives from the step that writes it
/// first, that of the stage's last reader, to that of its own stage. Where an earlier reader adds to it, the summand is in
/// memory of its own: two for each stage, of dx and of dresidual.
Placement place_gradients(const ModelPlans& plans, std::span<const StageBytes> bytes,
                          std::span<const std::size_t> last_readers);

}  // namespace gradring::nn
