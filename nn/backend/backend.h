// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/lib/partial_sums.h"
#include "kernels/runtime/branch.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"
#include "nn/backend/replica_statistics.h"
#include "nn/layers/layer.h"

namespace gradring::nn {

/// What layers draw random numbers by, besides their own number (NodeSpec::number). Every layout of one step's batch has
/// the same: ranks, devices and micro-batches only say which of its samples they have.
struct RandomKey {
  std::uint64_t seed = 0;              ///< of the training
  const std::int32_t* step = nullptr;  ///< number of the optimizer step, on the device; read when the work runs
  std::int64_t first = 0;              ///< number of the first sample in the step's batch
  std::int64_t stride = 1;             ///< from the number of a sample to that of the next
};

/// Pointers of one forward pass. Activations and parameters have the type of the nodes (NodeSpec::dtype); activations
/// are NHWC or [n, features].
struct ForwardPass {
  std::int64_t batch = 0;  ///< samples in this call; at most the planned batch
  int shard = 0;           ///< of a batch that is cut into several (ReplicaStatistics::shards)
  const void* x = nullptr;
  std::optional<kernels::DType> x_dtype = {};  ///< of x, if another than that of the nodes (Plan::reads)
  const void* residual = nullptr;              ///< the second input of the plan's Add, if it has one
  void* y = nullptr;
  std::span<const void* const> parameters;  ///< of the plan's nodes, in state_dict order
  std::span<float* const> buffers;          ///< the same, f32; in training, forward updates them
  bool overwrites_buffers = false;          ///< in training, with the statistics of this batch, as momentum 1 does
  std::byte* saved = nullptr;               ///< the plan's saved_bytes(), kept until backward
  std::byte* kept = nullptr;                ///< the plan's kept_bytes(), kept until backward; one for all shards
  bool recomputed = false;                  ///< by checkpointing: `kept` has what the first pass wrote, `buffers` stay
  RandomKey random = {};                    ///< in training
  std::byte* workspace = nullptr;           ///< the plan's workspace_bytes(), valid during this call
};

/// Where a backward pass leaves partial sums of the parameters' gradients (kernels/lib/partial_sums.h). Null: it writes
/// complete gradients.
struct PartialSumsTo {
  kernels::PartialSums* list = nullptr;
  std::byte* memory = nullptr;  ///< the plan's partial_sum_bytes(), for nothing else until they are added up
  /// Stream on which the gradients of the parameters may run beside dx; only one of both may use the workspace. The
  /// caller joins it before the workspace is used again. Null: they run on the pass's stream. Only with a list.
  kernels::Branch* branch = nullptr;

  /// The workspace of a kernel that may leave sums, else `workspace`.
  std::byte* workspace_or(std::byte* workspace) const { return list ? memory : workspace; }
};

/// Pointers of one backward pass. x, x_dtype, y, parameters, saved, kept, random: as in the forward pass before it.
struct BackwardPass {
  std::int64_t batch = 0;
  int shard = 0;
  const void* x = nullptr;
  std::optional<kernels::DType> x_dtype = {};
  const void* y = nullptr;
  void* dy = nullptr;  ///< gradient of y; backward may overwrite it
  bool dy_is_masked =
      false;           ///< of a last ReLU: dy is 0 already where y is; plans may ignore it, masking twice is once
  void* dx = nullptr;  ///< gradient of x; null if it is not wanted
  void* dresidual = nullptr;  ///< gradient of the residual; null without a residual, or if it is not wanted
  std::span<const void* const> parameters;
  std::span<float* const> gradients;  ///< of the parameters, same order, always f32; overwritten; null: not wanted
  std::byte* saved = nullptr;
  std::byte* kept = nullptr;
  RandomKey random = {};
  std::byte* workspace = nullptr;
  PartialSumsTo partial_sums = {};
};

/// How a backend computes one node or a chain of nodes, for a fixed largest batch. A plan owns no activations:
/// the program provides the memory whose sizes the plan states.
///
/// Order     forward and backward enqueue on the stream and return.
/// Threads   one thread at a time.
class Plan {
 public:
  virtual ~Plan() = default;
  /// Number of nodes that this plan computes.
  virtual std::size_t nodes() const { return 1; }
  /// Memory that forward fills for backward besides x and y (for example pooling's argmax codes), for each shard.
  virtual std::size_t saved_bytes() const { return 0; }
  /// The same for all shards, but a recomputation finds it unchanged (for example the statistics of a batch).
  virtual std::size_t kept_bytes() const { return 0; }
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Memory besides the workspace in which backward can leave partial sums; 0: it leaves none.
  virtual std::size_t partial_sum_bytes() const { return 0; }
  /// Whether the samples of a batch depend on each other, as in batch normalization. Then the two functions below come
  /// first, for all shards, also for those of 0 samples; and so for all replicas (NodeSpec::replicas).
  virtual bool has_statistics() const { return false; }
  /// Whether it takes x of that type, too, where nobody wants dx: it rounds what it reads.
  virtual bool reads(kernels::DType /*x_dtype*/) const { return false; }
  /// The library, or the kernel's table and variant ("conv2d/direct"); may be empty.
  virtual std::string description() const { return {}; }
  /// What forward needs of the whole batch; not for a recomputation. The workspace stays until forward.
  virtual void enqueue_statistics(kernels::Stream& /*stream*/, const ForwardPass& /*pass*/) {}
  /// The same of backward. Such a plan writes the gradients of its parameters here.
  virtual void enqueue_sums(kernels::Stream& /*stream*/, const BackwardPass& /*pass*/) {}
  virtual void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) = 0;
  virtual void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) = 0;
};

/// What makes distributions over the classes of labels, as kernels::softmax_cross_entropy::SoftTargets; by default,
/// labels are hard.
struct SoftLabels {
  const std::int32_t* labels_b = nullptr;  ///< second classes
  const float* weights_b = nullptr;        ///< theirs, in [0, 1]; the first class has the rest
  float label_smoothing = 0;

  /// Those of a batch from its sample `first` on.
  SoftLabels from(std::int64_t first) const {
    return labels_b ? SoftLabels{labels_b + first, weights_b + first, label_smoothing} : *this;
  }
};

/// Pointers of one evaluation of the loss. Activations and parameters have the planned type.
struct LossPass {
  std::int64_t rows = 0;
  const void* x = nullptr;  ///< the logits [rows, classes]; if the plan has a node, that node's input
  std::span<const void* const> parameters = {};  ///< of the plan's node, in state_dict order
  const std::int32_t* labels = nullptr;          ///< [rows], each in [0, classes)
  SoftLabels soft = {};
  float scale = 1;                    ///< 1 / samples of the optimizer step, over all ranks
  const float* loss_scale = nullptr;  ///< on the device, for mixed precision; null: 1
  void* logits = nullptr;             ///< [rows, classes], output of a plan with a node; null: not written
  void* dx =
      nullptr;  ///< gradient of scale * *loss_scale * sum of losses; null: neither it nor `gradients` are written
  std::span<float* const> gradients = {};  ///< of the parameters, same order, always f32; overwritten
  bool x_is_relu = false;     ///< x is the output of a ReLU: where it is not above 0, a plan with a node sets dx to 0
  float* loss_sum = nullptr;  ///< sum of the rows' losses, unscaled; overwritten
  std::int32_t* correct = nullptr;  ///< rows whose largest logit is that of the class of larger weight; overwritten
  unsigned* arrivals = nullptr;     ///< a word of device memory: 0, and 0 again afterwards; spares some plans a launch
  std::byte* workspace = nullptr;
  PartialSumsTo partial_sums = {};
};

/// A loss over a batch, forward and backward at once; where a kernel fuses them, with the linear layer that gives the
/// logits.
class LossPlan {
 public:
  virtual ~LossPlan() = default;
  /// Number of a model's last nodes that this plan computes: 0 or 1.
  virtual std::size_t nodes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  /// As Plan::partial_sum_bytes.
  virtual std::size_t partial_sum_bytes() const { return 0; }
  /// As Plan::description.
  virtual std::string description() const { return {}; }
  virtual void enqueue(kernels::Stream& stream, const LossPass& pass) = 0;
};

/// Gradients that a node's backward pass is asked for: what is never asked for needs no plan and no workspace. What a
/// node reads has a gradient if any parameter before it is trained.
enum class Backward : std::uint8_t {
  none,        ///< no backward pass: in evaluation, and where nothing is trained up to here
  input,       ///< its parameters are frozen
  parameters,  ///< what it reads has no gradient
  all,
};

inline bool wants_dx(Backward backward) { return backward == Backward::input || backward == Backward::all; }
inline bool wants_parameters(Backward backward) {
  return backward == Backward::parameters || backward == Backward::all;
}

/// One layer of a program with its shapes; the batch extent is the largest batch.
struct NodeSpec {
  Layer layer;
  Shape input;
  Shape output;
  kernels::DType dtype = kernels::DType::f32;  ///< of activations and weights; gradients of parameters are always f32
  std::string name = {};                       ///< of the layer, in its model
  std::int64_t number = 0;                     ///< the same
  bool trains = true;  ///< in a training program: batches are normalized by their own statistics
  Backward backward = Backward::all;
  std::vector<bool> frozen = {};          ///< of its parameters, those whose gradients are not wanted; empty: none
  ReplicaStatistics* replicas = nullptr;  ///< whose statistics the node shares; null: it has its own
};

/// Whether the gradient of one of its parameters is wanted.
inline bool wants_gradient(const NodeSpec& node, std::size_t parameter) {
  return wants_parameters(node.backward) && (parameter >= node.frozen.size() || !node.frozen[parameter]);
}

/// Whether all its gradients are wanted, as where nothing is frozen.
inline bool wants_every_gradient(const NodeSpec& node) {
  return wants_parameters(node.backward) && std::ranges::count(node.frozen, true) == 0;
}

/// The loss of a program.
struct CrossEntropySpec {
  std::int64_t rows = 0;  ///< at most, in one call
  std::int64_t classes = 0;
  kernels::DType dtype = kernels::DType::f32;  ///< of the logits and their gradient
};

/// Turns layers into plans for a device. `reference` is complete and slow, the ground truth of tests; `cpu` is oneDNN
/// and our kernels; `cuda` is cuDNN, cuBLASLt and our kernels.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  /// Plans the first of `nodes`, or as many as this backend computes at once (convolution and ReLU, for example);
  /// Plan::nodes says how many. `nodes` is a chain: each reads the one before, whose output nothing else reads. At most
  /// one is an Add, whose other input comes from elsewhere. It has no Flatten, and no Dropout in evaluation.
  ///
  /// Errors    InvalidArgument if this backend cannot compute the first node's kind, type or size;
  ///           DeviceError if its library fails.
  virtual std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) = 0;

  /// Plans softmax and cross-entropy, together with the node `last` that gives the logits if this backend fuses the
  /// two. `last` is null if that node must be planned by itself.
  virtual std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) = 0;
};

}  // namespace gradring::nn
