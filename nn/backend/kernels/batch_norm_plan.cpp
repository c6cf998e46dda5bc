// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "nn/layers/batch_norm2d.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::Stream;

/// Batch normalization, by the batch or by those of all replicas, with the Add and the ReLU that follow it, if they do.
/// Keeps the statistics: a recomputation neither takes them again nor moves the running ones.
class BatchNormPlan final : public Plan {
 public:
  BatchNormPlan(std::span<const NodeSpec> nodes, const kernels::batch_norm::Variant& variant)
      : dtype_(nodes[0].dtype),
        layer_(std::get<BatchNorm2d>(nodes[0].layer)),
        max_rows_(rows(nodes[0].input[0], nodes[0])),
        rows_of_sample_(rows(1, nodes[0])),
        trains_(nodes[0].trains),
        replicas_(trains_ ? nodes[0].replicas : nullptr),
        variant_(variant) {
    const auto follows = [&](auto layer) {
      return nodes_ < nodes.size() && std::holds_alternative<decltype(layer)>(nodes[nodes_].layer);
    };
    if (follows(Add{})) ++nodes_;
    if (follows(Relu{})) {
      ++nodes_;
      relu_ = true;
    }
    if (!replicas_) return;
    statistics_number_ = replicas_->reserve(kernels::batch_norm::statistics_elements(layer_.channels));
    sums_number_ = replicas_->reserve(kernels::batch_norm::sums_elements(layer_.channels));
  }

  std::size_t nodes() const override { return nodes_; }
  std::size_t kept_bytes() const override { return trains_ ? saved_bytes_of_batch() : 0; }
  std::size_t workspace_bytes() const override {
    const std::size_t row = kernels::batch_norm::statistics_elements(layer_.channels) * sizeof(float);
    return aligned(row) + (trains_ ? variant_.workspace_bytes(max_rows_, layer_.channels) : 0);
  }
  bool has_statistics() const override { return trains_; }
  std::string description() const override { return "batch_norm/" + std::string(variant_.name); }

  void enqueue_statistics(Stream& stream, const ForwardPass& pass) override {
    const Rows statistics =
        rows_of(statistics_number_, kernels::batch_norm::statistics_elements(layer_.channels), pass);
    variant_.statistics(stream, {.dtype = dtype_,
                                 .rows = pass.batch * rows_of_sample_,
                                 .channels = layer_.channels,
                                 .x = pass.x,
                                 .statistics = statistics.own,
                                 .workspace = scratch(pass.workspace)});
    if (!statistics.complete) return;
    if (replicas_) replicas_->enqueue_gather(statistics_number_);
    variant_.merge(stream, {.channels = layer_.channels,
                            .replicas = statistics.count,
                            .statistics = statistics.all,
                            .eps = layer_.eps,
                            .saved = reinterpret_cast<float*>(pass.kept),
                            .running_mean = pass.buffers[0],
                            .running_var = pass.buffers[1],
                            .momentum = pass.overwrites_buffers ? 1 : layer_.momentum});
  }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    auto* const saved = reinterpret_cast<float*>(trains_ ? pass.kept : pass.workspace);
    if (!trains_)
      variant_.from_running(stream, {.channels = layer_.channels,
                                     .running_mean = pass.buffers[0],
                                     .running_var = pass.buffers[1],
                                     .eps = layer_.eps,
                                     .saved = saved});
    variant_.normalize(stream, {.dtype = dtype_,
                                .rows = pass.batch * rows_of_sample_,
                                .channels = layer_.channels,
                                .x = pass.x,
                                .weight = pass.parameters[0],
                                .bias = pass.parameters[1],
                                .residual = pass.residual,
                                .saved = saved,
                                .relu = relu_,
                                .y = pass.y});
  }

  void enqueue_sums(Stream& stream, const BackwardPass& pass) override {
    const Rows sums = rows_of(sums_number_, kernels::batch_norm::sums_elements(layer_.channels), pass);
    variant_.backward_sums(stream, {.dtype = dtype_,
                                    .rows = pass.batch * rows_of_sample_,
                                    .channels = layer_.channels,
                                    .x = pass.x,
                                    .y = relu_ ? pass.y : nullptr,
                                    .dy = pass.dy,
                                    .saved = reinterpret_cast<const float*>(pass.kept),
                                    .sums = sums.own,
                                    .dweight = pass.gradients[0],
                                    .dbias = pass.gradients[1],
                                    .workspace = scratch(pass.workspace)});
    if (replicas_ && sums.complete) replicas_->enqueue_gather(sums_number_);
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx && !pass.dresidual) return;
    const Rows sums = rows_of(sums_number_, kernels::batch_norm::sums_elements(layer_.channels), pass);
    variant_.backward(stream, {.dtype = dtype_,
                               .rows = pass.batch * rows_of_sample_,
                               .channels = layer_.channels,
                               .x = pass.x,
                               .y = relu_ ? pass.y : nullptr,
                               .dy = pass.dy,
                               .weight = pass.parameters[0],
                               .saved = reinterpret_cast<const float*>(pass.kept),
                               .sums = sums.all,
                               .replicas = sums.count,
                               .dx = pass.dx ? pass.dx : pass.dy,
                               .dresidual = pass.dresidual});
  }

 private:
  static std::int64_t rows(std::int64_t batch, const NodeSpec& node) { return batch * node.input[1] * node.input[2]; }
  static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  std::size_t saved_bytes_of_batch() const {
    return kernels::batch_norm::saved_elements(layer_.channels) * sizeof(float);
  }
  /// The kernels' workspace follows one row of statistics or sums.
  std::byte* scratch(std::byte* workspace) const {
    return workspace + aligned(kernels::batch_norm::statistics_elements(layer_.channels) * sizeof(float));
  }

  /// A row of each shard of each replica; without others, one in the workspace.
  struct Rows {
    float* all = nullptr;
    float* own = nullptr;  // of the pass's shard
    std::int64_t count = 1;
    bool complete = true;  // with this shard, this replica's are written
  };
  template <class Pass>
  Rows rows_of(int number, std::size_t elements, const Pass& pass) const {
    auto* const alone = reinterpret_cast<float*>(pass.workspace);
    if (!replicas_) return {alone, alone};
    float* const all = replicas_->rows(number);
    const int shards = replicas_->shards(), own = replicas_->own() * shards + pass.shard;
    return {.all = all,
            .own = all + static_cast<std::size_t>(own) * elements,
            .count = std::int64_t{replicas_->replicas()} * shards,
            .complete = pass.shard + 1 == shards};
  }

  DType dtype_;
  BatchNorm2d layer_;
  std::int64_t max_rows_;
  std::int64_t rows_of_sample_;
  bool trains_;
  ReplicaStatistics* replicas_;  // null: this batch alone
  int statistics_number_ = 0;    // of rows_of
  int sums_number_ = 0;
  bool relu_ = false;
  std::size_t nodes_ = 1;
  kernels::batch_norm::Variant variant_;
};

}  // namespace

std::unique_ptr<Plan> KernelPlans::plan_of(const BatchNorm2d&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<BatchNormPlan>(nodes, pick_variant(kernels_.batch_norm, device_, nodes[0].dtype));
}

}  // namespace gradring::nn
