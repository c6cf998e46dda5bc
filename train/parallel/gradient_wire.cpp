// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_wire.h"

#include "kernels/runtime/error.h"

namespace gradring::train {

using kernels::DType;

GradientWire::GradientWire(const WireSpec& spec, comm::ProcessGroup& group, comm::Segment& gradients,
                           const nn::ArenaLayout& layout, const kernels::cast::Variant& cast)
    : spec_(spec), group_(group), gradients_(gradients), layout_(layout), cast_(cast) {
  check(gradients.size() >= layout.elements() * sizeof(float), "the gradients' segment is smaller than their layout");
  if (spec.dtype != DType::f32) rounded_ = group.allocate(memory_bytes(spec, layout));
}

void GradientWire::enqueue_all_reduce(int bucket, kernels::Stream& stream) {
  Slice slice = layout_.bucket(bucket);
  if (!rounded_) return enqueue_sum(gradients_, slice, DType::f32, stream);
  if (bucket + 1 == layout_.buckets()) {  // behind its gradients are the riders, and then zeros
    enqueue_sum(gradients_, layout_.riders(), DType::f32, stream);
    slice.elements = layout_.riders().offset - slice.offset;
  }
  enqueue_rounded_sum(slice, stream);
}

void GradientWire::enqueue_rounded_sum(const Slice& slice, kernels::Stream& stream) {
  void* const f32 = gradients_.data() + slice.offset * sizeof(float);
  void* const rounded = rounded_->data() + slice.offset * kernels::size_of(spec_.dtype);
  cast_.run(stream, {.from = DType::f32, .to = spec_.dtype, .x = f32, .y = rounded, .elements = slice.elements});
  enqueue_sum(*rounded_, slice, spec_.dtype, stream);
  cast_.run(stream, {.from = spec_.dtype, .to = DType::f32, .x = rounded, .y = f32, .elements = slice.elements});
}

void GradientWire::enqueue_sum(comm::Segment& segment, const Slice& slice, DType dtype, kernels::Stream& stream) {
  group_.all_reduce({.segment = &segment, .slice = {slice.offset, slice.elements}, .dtype = dtype}, stream,
                    spec_.algorithm);
}

}  // namespace gradring::train
