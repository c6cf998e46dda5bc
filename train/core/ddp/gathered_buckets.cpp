// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/gathered_buckets.h"

namespace gradring::train {

WeightMatrices weight_matrices(std::span<const nn::Parameter> parameters, const ParameterGroups& groups,
                               const nn::ArenaLayout& layout) {
  WeightMatrices all;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterGroup& group = groups.of(i);
    all.of_parameter.push_back(-1);
    if (group.frozen || group.options.kind != OptimizerKind::muon) continue;
    all.of_parameter.back() = static_cast<int>(all.matrices.size());
    const int bucket = layout.bucket_of(static_cast<int>(i));
    const std::int64_t rows = parameters[i].shape[0];
    all.matrices.push_back({.rows = rows,
                            .columns = parameters[i].shape.elements() / rows,
                            .bucket = bucket,
                            .offset = layout.parameter(static_cast<int>(i)).offset - layout.bucket(bucket).offset});
  }
  return all;
}

MuonParts muon_parts(const OptimizerSpec& spec, const WeightMatrices& matrices, WholeBuckets& buckets) {
  return {.matrices = matrices.matrices, .buckets = &buckets, .scale = spec.muon_scale, .steps = spec.muon_steps};
}

GatheredBuckets::GatheredBuckets(const WeightMatrices& matrices, comm::ProcessGroup& group, const Shards& shards,
                                 DistributedDataParallel& ddp)
    : group_(group), shards_(shards), ddp_(ddp) {
  if (!matrices.matrices.empty()) memory_.emplace(BucketMemorySpec{.slots = 1}, group, shards.layout());
}

void GatheredBuckets::enqueue_gather(int bucket) {
  if (shards_.whole()) return;
  ddp_.enqueue_in_line([&](kernels::Stream& line) { group_.all_gather(memory_->range(bucket), line); });
}

}  // namespace gradring::train
