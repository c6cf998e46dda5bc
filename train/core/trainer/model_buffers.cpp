// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/model_buffers.h"

#include <algorithm>

#include "nn/program/program.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {

ModelBuffers::ModelBuffers(const nn::Model& model, const Parts& parts)
    : parts_(parts), tensors_(nn::buffers_of(model)), layout_(nn::Program::buffer_layout(model)) {
  if (!tensors_.empty()) memory_.emplace(BucketMemorySpec{}, parts.group, layout_);
}

void ModelBuffers::initialize(Deadline deadline) {
  if (!memory_) return;
  const kernels::Buffer host = host_memory();
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    std::fill_n(arena(host).parameter(static_cast<int>(i)), tensors_[i].shape.elements(), tensors_[i].constant);
  copy_to_all(host, deadline);
}

void ModelBuffers::load(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from, Deadline deadline) {
  if (!memory_) return;
  const kernels::Buffer host = host_memory();
  if (parts_.group.rank() == 0) load_parameters(of_rank_0, from, tensors_, arena(host));
  copy_to_all(host, deadline);
}

void ModelBuffers::synchronize(Deadline deadline) {
  if (!memory_) return;
  parts_.group.broadcast(memory_->range(0), 0, parts_.stream);
  parts_.stream.synchronize(deadline);
}

kernels::Buffer ModelBuffers::on_host(Deadline deadline) const {
  kernels::Buffer host = host_memory();
  if (memory_) parts_.stream.enqueue_copy(host.data(), memory_->data(0), host.size());
  parts_.stream.synchronize(deadline);
  return host;
}

void ModelBuffers::set(const kernels::Buffer& host, Deadline deadline) {
  if (memory_) parts_.stream.enqueue_copy(memory_->data(0), host.data(), host.size());
  parts_.stream.synchronize(deadline);
}

void ModelBuffers::clear() {
  if (memory_) parts_.stream.enqueue_zero(memory_->data(0), memory_->bytes());
}

/// Zeroed.
kernels::Buffer ModelBuffers::host_memory() const {
  kernels::Buffer host = parts_.device.allocate(layout_.elements() * sizeof(float), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), layout_.elements(), 0.0f);
  return host;
}

void ModelBuffers::copy_to_all(const kernels::Buffer& of_rank_0, Deadline deadline) {
  if (parts_.group.rank() == 0) parts_.stream.enqueue_copy(memory_->data(0), of_rank_0.data(), of_rank_0.size());
  synchronize(deadline);
}

}  // namespace gradring::train
