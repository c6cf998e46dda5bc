// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "nn/backend/cuda/cudnn.h"
#include "nn/layers/batch_norm2d.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::Stream;

/// Tensor ids of both graphs. The running statistics are read, and written elsewhere.
enum Tensor : std::int64_t {
  kX = 1,
  kMean,
  kInvVariance,
  kScale,
  kBias,
  kEpsilon,
  kMomentum,
  kRunningMean,
  kRunningVar,
  kNewRunningMean,
  kNewRunningVar,
  kSum,
  kResidual,
  kY,
  kDy,
  kDscale,
  kDbias,
  kDx
};

/// The graphs of a batch normalization by its batch, each channel's statistics in f32.
class Graphs {
 public:
  Graphs(const CudnnApi& api, const Shape& input, DType dtype)
      : api_(api), extents_{input[0], input[3], input[1], input[2]}, type_(cudnn_type(dtype)) {}

  /// y = norm(x) [+ residual]
  std::vector<CudnnDescriptor> forward(bool residual) const {
    const CudnnDescriptor y = values(kY);
    const CudnnDescriptor sum = make_tensor(
        api_, {.id = kSum, .extents = extents_, .type = CUDNN_DATA_FLOAT, .storage = CudnnStorage::within_graph});
    CudnnDescriptor norm(api_, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    norm.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, values(kX))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, of_channels(kMean))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, of_channels(kInvVariance))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, of_channels(kScale))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, of_channels(kBias))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, number(kEpsilon))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, number(kMomentum))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, of_channels(kRunningMean))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, of_channels(kRunningVar))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, of_channels(kNewRunningMean))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, of_channels(kNewRunningVar))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, residual ? sum : y)
        .finalize();
    std::vector<CudnnDescriptor> operations;
    operations.push_back(std::move(norm));
    if (residual) operations.push_back(make_pointwise_add(api_, sum, values(kResidual), y));
    return operations;
  }

  std::vector<CudnnDescriptor> backward() const {
    CudnnDescriptor norm(api_, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    norm.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, values(kX))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, of_channels(kMean))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, of_channels(kInvVariance))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, values(kDy))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, of_channels(kScale))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, of_channels(kDscale))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, of_channels(kDbias))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, values(kDx))
        .finalize();
    std::vector<CudnnDescriptor> operations;
    operations.push_back(std::move(norm));
    return operations;
  }

 private:
  CudnnDescriptor values(std::int64_t id) const {
    return make_tensor(api_, {.id = id, .extents = extents_, .type = type_});
  }
  CudnnDescriptor of_channels(std::int64_t id) const {
    return make_tensor(api_, {.id = id, .extents = {1, extents_[1], 1, 1}, .type = CUDNN_DATA_FLOAT});
  }
  /// On the host, read when the graph is executed.
  CudnnDescriptor number(std::int64_t id) const {
    return make_tensor(
        api_, {.id = id, .extents = {1, 1, 1, 1}, .type = CUDNN_DATA_FLOAT, .storage = CudnnStorage::by_value});
  }

  const CudnnApi& api_;
  CudnnExtents extents_;
  cudnnDataType_t type_;
};

struct BatchNormEngines {
  std::optional<CudnnEngine> forward, backward;

  bool complete() const { return forward && backward; }
  std::size_t workspace_bytes() const { return std::max(forward->workspace_bytes, backward->workspace_bytes); }
};

class CudnnBatchNormPlan final : public Plan {
 public:
  CudnnBatchNormPlan(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn, const HelperKernels& helpers,
                     std::unique_ptr<Plan>& ours)
      : node_(nodes[0]),
        layer_(std::get<BatchNorm2d>(node_.layer)),
        residual_(nodes.size() > 1 && std::holds_alternative<Add>(nodes[1].layer)),
        relu_(std::holds_alternative<Relu>(nodes[ours->nodes() - 1].layer)),
        cudnn_(std::move(cudnn)),
        helpers_(helpers) {
    if (!engines_for(node_.input[0]).complete()) return;
    most_workspace_ = engines_for(node_.input[0]).workspace_bytes();
    ours_ = std::move(ours);
  }

  bool complete() const { return ours_ != nullptr; }
  std::size_t nodes() const override { return ours_->nodes(); }
  std::size_t kept_bytes() const override { return ours_->kept_bytes(); }
  std::size_t workspace_bytes() const override {
    return std::max(ours_->workspace_bytes(), aligned(most_workspace_) + 4 * channel_bytes());
  }
  std::string description() const override { return "cudnn"; }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    const BatchNormEngines& engines = engines_for(pass.batch);
    if (!engines.complete() && !pass.recomputed) ours_->enqueue_statistics(stream, pass);
    if (!engines.complete() || pass.recomputed) return ours_->enqueue_forward(stream, pass);
    auto* const mean = reinterpret_cast<float*>(pass.kept);
    const float momentum = pass.overwrites_buffers ? 1 : layer_.momentum;
    float* const new_running[] = {in_workspace(pass.workspace, 2), in_workspace(pass.workspace, 3)};
    std::vector<CudnnPointer> tensors = {{kX, pass.x},
                                         {kMean, mean},
                                         {kInvVariance, mean + layer_.channels},
                                         {kScale, as_f32(stream, pass.parameters[0], pass.workspace, 0)},
                                         {kBias, as_f32(stream, pass.parameters[1], pass.workspace, 1)},
                                         {kEpsilon, &layer_.eps},
                                         {kMomentum, &momentum},
                                         {kRunningMean, pass.buffers[0]},
                                         {kRunningVar, pass.buffers[1]},
                                         {kNewRunningMean, new_running[0]},
                                         {kNewRunningVar, new_running[1]},
                                         {kY, pass.y}};
    if (residual_) tensors.push_back({kResidual, pass.residual});
    cudnn_->enqueue(stream, *engines.forward, tensors, pass.workspace);
    for (const std::size_t i : {0u, 1u})
      stream.enqueue_copy(pass.buffers[i], new_running[i], static_cast<std::size_t>(layer_.channels) * sizeof(float));
    if (relu_)
      helpers_.relu.forward(stream, {.dtype = node_.dtype, .x = pass.y, .y = pass.y, .elements = elements(pass.batch)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    const BatchNormEngines& engines = engines_for(pass.batch);
    if (!engines.complete()) {
      ours_->enqueue_sums(stream, pass);
      return ours_->enqueue_backward(stream, pass);
    }
    void* const dsum = pass.dresidual ? pass.dresidual : pass.dy;  // of what the ReLU reads
    const std::size_t count = elements(pass.batch);
    if (relu_)
      helpers_.relu.backward(stream, {.dtype = node_.dtype, .y = pass.y, .dy = pass.dy, .dx = dsum, .elements = count});
    else if (pass.dresidual)
      stream.enqueue_copy(dsum, pass.dy, count * kernels::size_of(node_.dtype));
    const auto* const mean = reinterpret_cast<const float*>(pass.kept);
    cudnn_->enqueue(stream, *engines.backward,
                    {{kX, pass.x},
                     {kMean, mean},
                     {kInvVariance, mean + layer_.channels},
                     {kScale, as_f32(stream, pass.parameters[0], pass.workspace, 0)},
                     {kDy, dsum},
                     {kDscale, pass.gradients[0]},
                     {kDbias, pass.gradients[1]},
                     {kDx, pass.dx}},
                    pass.workspace);
  }

 private:
  static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  std::size_t channel_bytes() const { return aligned(static_cast<std::size_t>(layer_.channels) * sizeof(float)); }
  std::size_t elements(std::int64_t batch) const {
    return static_cast<std::size_t>(node_.input.with_batch(batch).elements());
  }
  /// One of four vectors of channels, behind the engines' workspace.
  float* in_workspace(std::byte* workspace, std::size_t number) const {
    return reinterpret_cast<float*>(workspace + aligned(most_workspace_) + number * channel_bytes());
  }
  /// cuDNN takes weights and biases in f32 only.
  const void* as_f32(Stream& stream, const void* values, std::byte* workspace, std::size_t number) const {
    if (node_.dtype == DType::f32) return values;
    float* const converted = in_workspace(workspace, number);
    helpers_.cast.run(stream, {.from = node_.dtype,
                               .to = DType::f32,
                               .x = values,
                               .y = converted,
                               .elements = static_cast<std::size_t>(layer_.channels)});
    return converted;
  }

  /// Incomplete where our kernels compute this batch.
  const BatchNormEngines& engines_for(std::int64_t batch) {
    const auto known = engines_.find(batch);
    if (known != engines_.end()) return known->second;
    BatchNormEngines engines;
    if (batch > 0) {
      const Graphs graphs(cudnn_->api(), node_.input.with_batch(batch), node_.dtype);
      engines.forward = cudnn_->choose(graphs.forward(residual_), most_workspace_);
      engines.backward = cudnn_->choose(graphs.backward(), most_workspace_);
    }
    return engines_.emplace(batch, std::move(engines)).first->second;
  }

  const NodeSpec node_;
  const BatchNorm2d layer_;
  bool residual_;
  bool relu_;
  std::shared_ptr<Cudnn> cudnn_;  // one handle, shared with other plans
  HelperKernels helpers_;
  std::unique_ptr<Plan> ours_;
  std::size_t most_workspace_ = kMostCudnnWorkspaceBytes;
  std::map<std::int64_t, BatchNormEngines> engines_;  // by batch
};

}  // namespace

std::unique_ptr<Plan> plan_cudnn_batch_norm(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn,
                                            const HelperKernels& helpers, std::unique_ptr<Plan>& ours) {
  if (nodes[0].backward != Backward::all || !wants_every_gradient(nodes[0]) || nodes[0].replicas) return nullptr;
  // The kept vectors of channels follow each other, and each must be aligned.
  const auto channels = std::get<BatchNorm2d>(nodes[0].layer).channels;
  if (channels * static_cast<std::int64_t>(sizeof(float)) % kCudnnAlignment != 0) return nullptr;
  auto plan = std::make_unique<CudnnBatchNormPlan>(nodes, std::move(cudnn), helpers, ours);
  return plan->complete() ? std::move(plan) : nullptr;
}

}  // namespace gradring::nn
