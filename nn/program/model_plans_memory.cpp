// SPDX-License-Identifier: Apache-2.0
#include "nn/program/model_plans.h"

#include <algorithm>

namespace gradring::nn {
namespace {

/// Of the stages from `first`. What they read of stages before is kept, as the program's input is.
std::vector<StageCost> costs_of(const ModelPlans& plans, std::span<const StageBytes> bytes, std::size_t first) {
  const std::vector<PlannedStage>& stages = plans.stages;
  std::vector<StageCost> costs;
  for (std::size_t i = first; i < stages.size(); ++i)
    costs.push_back({.bytes = bytes[i].padded(), .work = stages[i].forward_work, .kept_bytes = bytes[i].padded_kept()});
  std::size_t first_read = plans.head.x;  // by the stages after i
  for (std::size_t i = stages.size(); i-- > first;) {
    costs[i - first].may_end = first_read >= i;
    for (const std::size_t read : {stages[i].x, stages[i].residual.value_or(kProgramInput)})
      if (read >= first) first_read = std::min(first_read, read);
  }
  return costs;
}

}  // namespace

std::vector<StageBytes> bytes_of(const std::vector<PlannedStage>& stages, const BatchShards& shards) {
  std::vector<StageBytes> bytes;
  for (const PlannedStage& stage : stages)
    bytes.push_back({.output = shards.bytes(stage.output_bytes),
                     .saved = shards.bytes(stage.plan->saved_bytes()),
                     .kept = stage.plan->kept_bytes()});
  return bytes;
}

bool adds_dx(const ModelPlans& plans, std::size_t number, std::span<const std::size_t> last_readers) {
  const PlannedStage& stage = plans.stages[number];
  return plans.has_gradient(stage.x) && last_readers[stage.x] != number;
}

bool adds_dresidual(const ModelPlans& plans, std::size_t number, std::span<const std::size_t> last_readers) {
  const PlannedStage& stage = plans.stages[number];
  const std::size_t read = stage.residual.value_or(kProgramInput);
  return plans.has_gradient(read) && (read == stage.x || last_readers[read] != number);
}

Segmentation segments_of(const ModelPlans& plans, std::span<const StageBytes> bytes, std::size_t first,
                         const Checkpointing& checkpointing) {
  Segmentation segments = choose_segments(costs_of(plans, bytes, first), checkpointing,
                                          forward_only_bytes(bytes, plans.last_readers(), first));
  for (std::size_t& end : segments.ends) end += first;
  return segments;
}

Placement place_gradients(const ModelPlans& plans, std::span<const StageBytes> bytes,
                          std::span<const std::size_t> last_readers) {
  const std::size_t count = plans.stages.size();
  std::vector<Lifetime> blocks;
  for (std::size_t i = 0; i < count; ++i)
    blocks.push_back(
        {.bytes = plans.has_gradient(i) ? bytes[i].output : 0, .first = count - last_readers[i], .last = count - i});
  for (std::size_t i = 0; i < count; ++i) {
    const PlannedStage& stage = plans.stages[i];
    const auto summand = [&](std::size_t read, bool adds) {
      blocks.push_back({.bytes = adds ? bytes[read].output : 0, .first = count - i, .last = count - i});
    };
    summand(stage.x, adds_dx(plans, i, last_readers));
    summand(stage.residual.value_or(kProgramInput), adds_dresidual(plans, i, last_readers));
  }
  return assign_offsets(blocks);
}

}  // namespace gradring::nn
