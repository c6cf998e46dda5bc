// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/exact_units.h"

namespace gradring::train {

using kernels::DType;

ExactUnits::ExactUnits(const Spec& spec, const Parts& parts)
    : spec_(spec),
      parts_(parts),
      places_({.dtype = DType::i64, .places = spec.places}, parts.group, parts.shards.layout()),
      memory_(parts.device.allocate(spec.places > 0 ? parts.shards.elements() * sizeof(std::int64_t) : 0)) {
  if (spec.places == 0) return;
  for (int bucket = 0; bucket < parts.shards.layout().buckets(); ++bucket)
    collected_.push_back(parts.device.make_event());
}

void ExactUnits::begin_pass(GradientPath::Pass pass) {
  pass_ = pass;
  if (!pass.first) return;
  parts_.rounding.enqueue_clear();
  if (!collects()) parts_.stream.enqueue_zero(places_.data(0), places_.bytes());
}

void ExactUnits::enqueue_sum(int bucket, kernels::Stream& stream) {
  parts_.shards.whole() ? parts_.group.all_reduce(places_.range(bucket), stream, spec_.algorithm)
                        : parts_.group.reduce_scatter(places_.range(bucket), stream);
  if (collects()) enqueue_collect(bucket, stream);
  if (pass_.last && bucket + 1 == places_.layout().buckets()) parts_.rounding.enqueue_sum(stream, spec_.algorithm);
}

/// Leaves zeros behind: the place's next bucket is added to them.
void ExactUnits::enqueue_collect(int bucket, kernels::Stream& stream) {
  const std::int64_t* const from = place(bucket) + parts_.shards.in_bucket(bucket).offset;
  const Shards::Slice packed = parts_.shards.packed(bucket);
  std::int64_t* const to = memory_.as<std::int64_t>() + packed.offset;
  if (pass_.first)
    stream.enqueue_copy(to, from, packed.elements * sizeof(std::int64_t));
  else
    parts_.accumulate.run(stream, {.dtype = DType::i64, .x = from, .y = to, .elements = packed.elements});
  stream.enqueue_zero(places_.data(bucket), places_.bytes(bucket));
  stream.record(*collected_[static_cast<std::size_t>(bucket)]);
}

std::int64_t* ExactUnits::parameter(int index) const {
  const nn::ArenaLayout& layout = places_.layout();
  const int bucket = layout.bucket_of(index);
  return place(bucket) + (layout.parameter(index).offset - layout.bucket(bucket).offset);
}

const std::int64_t* ExactUnits::sums(int bucket) const {
  return collects() ? memory_.as<std::int64_t>() + parts_.shards.packed(bucket).offset
                    : place(bucket) + parts_.shards.in_bucket(bucket).offset;
}

}  // namespace gradring::train
