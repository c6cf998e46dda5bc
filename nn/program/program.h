// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/models/model.h"
#include "nn/program/activation_memory.h"
#include "nn/program/arena.h"
#include "nn/program/model_plans.h"

namespace gradring::nn {

/// Callbacks of a program while it enqueues one step, for gradient reduction, weight gathering, memory accounting and
/// traces. Calls come on the host in the order of the work on the stream, which may not have run yet. Parameters are
/// indices in state_dict order. All hooks default to nothing.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before_forward() {}
  virtual void before_backward() {}
  /// The work enqueued next reads the weights of `parameters`: forward, recomputation or backward. Work enqueued before
  /// has read them once it has run.
  virtual void weights_needed(std::span<const int> /*parameters*/) {}
  /// The work enqueued next writes the gradients of `parameters`.
  virtual void gradients_begin(std::span<const int> /*parameters*/) {}
  /// The work enqueued before wrote the loss, and the gradients of `parameters`, of one shard of the batch; that of the
  /// next shard overwrites them.
  virtual void loss_of_shard() {}
  virtual void gradients_of_shard(std::span<const int> /*parameters*/) {}
  /// All work that writes the gradient of `parameter` is enqueued, or its partial sums (Gradients::partial_sums).
  virtual void gradient_ready(int /*parameter*/) {}
};

/// Ignores all calls.
class NoObserver final : public StepObserver {};

/// Forwards each call to `first`, then to `second`. Both must outlive it.
class ObserverPair final : public StepObserver {
 public:
  ObserverPair(StepObserver& first, StepObserver& second) : first_(first), second_(second) {}

  void before_forward() override {
    first_.before_forward();
    second_.before_forward();
  }
  void before_backward() override {
    first_.before_backward();
    second_.before_backward();
  }
  void weights_needed(std::span<const int> parameters) override {
    first_.weights_needed(parameters);
    second_.weights_needed(parameters);
  }
  void gradients_begin(std::span<const int> parameters) override {
    first_.gradients_begin(parameters);
    second_.gradients_begin(parameters);
  }
  void loss_of_shard() override {
    first_.loss_of_shard();
    second_.loss_of_shard();
  }
  void gradients_of_shard(std::span<const int> parameters) override {
    first_.gradients_of_shard(parameters);
    second_.gradients_of_shard(parameters);
  }
  void gradient_ready(int parameter) override {
    first_.gradient_ready(parameter);
    second_.gradient_ready(parameter);
  }

 private:
  StepObserver& first_;
  StepObserver& second_;
};

enum class ProgramMode : std::uint8_t {
  training,    ///< keeps activations for backward
  evaluation,  ///< forward and loss only: an activation is kept until its last reader has run
};

/// Bytes that a program allocates.
struct ProgramMemory {
  std::size_t activations = 0;           ///< outputs of plans, saved data, logits
  std::size_t activation_gradients = 0;  ///< each kept until its plan has run backward
  std::size_t workspace = 0;             ///< with partial sums

  std::size_t total() const { return activations + activation_gradients + workspace; }
};

/// The layers of a plan, and what computes them (Plan::description). The loss is a plan, too, possibly without layers.
struct PlanDescription {
  std::vector<std::string> layers;
  std::string by;
};

/// The device of a program by purpose of the allocation: the same one, or two that count separately
/// (kernels/runtime/counted_device.h).
struct ProgramDevices {
  kernels::Device& activations;
  kernels::Device& workspace;

  ProgramDevices(kernels::Device& device)  // NOLINT(google-explicit-constructor): one device for both
      : activations(device), workspace(device) {}
  ProgramDevices(kernels::Device& for_activations, kernels::Device& for_workspace)
      : activations(for_activations), workspace(for_workspace) {}
};

/// The passes of a training step: of one Program, or of several that split the batch over devices. All pointers are to
/// memory of the device whose stream the calls get; that stream orders the work.
///
/// Threads   one thread at a time.
class StepProgram {
 public:
  struct Batch {
    const void* x = nullptr;                     ///< samples, NHWC, in the program's type
    std::int64_t samples = 0;                    ///< how many
    RandomKey random = {};                       ///< needed in training
    bool overwrites_buffers = false;             ///< as ForwardPass
    std::optional<kernels::DType> x_dtype = {};  ///< f32, where a Program reads that (Program::reads_f32)
  };
  struct LossTarget {
    const std::int32_t* labels = nullptr;
    SoftLabels soft = {};
    float scale = 1;
    const float* loss_scale = nullptr;  ///< on the device; multiplies the gradient, as `scale` does; null: 1
    float* loss_sum = nullptr;
    std::int32_t* correct = nullptr;
    unsigned* arrivals = nullptr;  ///< a word of device memory: 0, and 0 again afterwards; may be null (LossPass)
  };

  virtual ~StepProgram() = default;
  /// Runs the model over the samples. Weights have the program's type. In training mode a batch may be empty: such a
  /// pass takes part in the statistics of replicas.
  virtual void enqueue_forward(kernels::Stream& stream, const Weights& weights, const Batch& batch,
                               StepObserver& observer) = 0;
  /// The cross-entropy of the last forward, in training mode, and the gradients of its mean for every parameter, f32
  /// and overwritten. Tells `observer` of each gradient when its last work is enqueued, in ready_order.
  virtual void enqueue_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                                const LossTarget& target, StepObserver& observer) = 0;

  /// A forward and backward pass over an empty batch: sets gradients and piggybacked scalars to 0, with the observer's
  /// usual calls; takes part in the statistics of replicas.
  virtual void enqueue_empty_batch(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                                   StepObserver& observer) = 0;
};

/// A model planned by one backend for one device and batches of up to `max_batch` samples: the plans in order, and the
/// memory of all activations, allocated once.
///
///   x -> [plan 0] -> a0 -> [plan 1] -> a1 ... -> logits -> loss
///          p0,p1     '-----------------^                   dlogits
///
/// A plan may read the outputs of two others. The gradients that the readers of one output give it are summed.
///
/// Frozen parameters get no gradient, and backward ends at the first plan up to which something is trained. Plans before
/// it run forward only, in memory as of an evaluation. Observers hear of trained parameters only: frozen weights are
/// always there.
///
/// In training mode a backend may fuse the last layer with the loss; forward then ends before it. With checkpointing,
/// backward recomputes activations that forward did not keep: the same work on the same values, so the results are
/// bit-identical.
///
/// Where replicas cut their batches into shards (ReplicaStatistics::shards), each plan computes one shard after the
/// other, and its gradients are those of one shard at a time (StepObserver::gradients_of_shard).
///
/// Order     every member enqueues on `stream` and returns.
/// Threads   one thread at a time; all calls of one step on one stream.
class Program final : public StepProgram {
 public:
  /// `dtype`: of activations and weights; f32, f16 or bf16. `replicas`: with which batches are normalized together in
  /// training; null: alone. Their shards must divide `max_batch`. `most_partial_sum_bytes`: memory in which plans may
  /// leave partial sums (Gradients::partial_sums); not with several shards.
  ///
  /// Errors    InvalidArgument if the layers do not fit each other or the backend, or the activations exceed the budget
  ///           of `checkpointing` (training only); DeviceError if memory is exhausted.
  Program(const Model& model, std::int64_t max_batch, ProgramMode mode, Backend& backend, const ProgramDevices& devices,
          kernels::DType dtype = kernels::DType::f32, const Checkpointing& checkpointing = {},
          ReplicaStatistics* replicas = nullptr, std::size_t most_partial_sum_bytes = 0);

  void enqueue_forward(kernels::Stream& stream, const Weights& weights, const Batch& batch,
                       StepObserver& observer) override;
  void enqueue_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                        const LossTarget& target, StepObserver& observer) override;
  void enqueue_empty_batch(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                           StepObserver& observer) override;
  /// The cross-entropy of the last forward, in evaluation mode.
  void enqueue_loss(kernels::Stream& stream, const LossTarget& target);

  /// Logits [batch, classes] on the device, in the program's type; valid after forward in evaluation mode, after
  /// forward and backward in training mode. Of several shards those of the first.
  const void* logits() const {
    return logits_.size() > 0 ? logits_.data() : static_cast<const void*>(output_of(plans_.stages.size() - 1, 0));
  }
  kernels::DType dtype() const { return dtype_; }
  /// Whether a batch in f32 need not be rounded to dtype() before: the plans that read it do that.
  bool reads_f32() const {
    return dtype_ == kernels::DType::f32 || (shards_.count == 1 && plans_.read_input_as(kernels::DType::f32));
  }
  std::int64_t max_batch() const { return max_batch_; }
  ProgramMemory memory() const {
    return {.activations = activations_.size() + logits_.size() + cut_input_.size(),
            .activation_gradients = gradients_.size(),
            .workspace = workspace_.size() + partial_sums_.size()};
  }
  /// The segments of checkpointing: one if nothing is recomputed.
  const Segmentation& segments() const { return segments_; }

  /// The trained parameters of each plan, first layer first; may be empty.
  std::vector<std::vector<int>> parameters_of_plans() const {
    std::vector<std::vector<int>> all;
    for (const PlannedStage& stage : plans_.stages) all.push_back(stage.trained);
    all.push_back(plans_.head.parameters);
    return all;
  }

  /// The plans, first layer first, the loss last.
  std::vector<PlanDescription> description() const;

  /// Trained parameters in the order in which backward finishes their gradients: last layer first, each bias before its
  /// weight.
  static std::vector<int> ready_order(const Model& model);

  /// Positions of the model's buffers in one block.
  static ArenaLayout buffer_layout(const Model& model);

 private:
  /// The part of one shard in memory that begins at `first`.
  static std::byte* of_shard(std::byte* first, std::size_t shard_bytes, int shard) {
    return first + static_cast<std::size_t>(shard) * BatchShards::stride(shard_bytes);
  }
  std::byte* output_of(std::size_t stage, int shard) const {
    return of_shard(activations_.data() + layout_.stages[stage].output, plans_.stages[stage].output_bytes, shard);
  }
  std::byte* saved_of(std::size_t stage, int shard) const {
    return of_shard(activations_.data() + layout_.stages[stage].saved, plans_.stages[stage].plan->saved_bytes(), shard);
  }
  std::byte* kept_of(std::size_t stage) const { return activations_.data() + layout_.stages[stage].kept; }
  const void* read(std::size_t stage, int shard) const {
    if (stage != kProgramInput) return output_of(stage, shard);
    return shard == 0 ? input_ : of_shard(cut_input_.data(), input_bytes_, shard);
  }
  std::optional<kernels::DType> dtype_read(std::size_t stage) const {
    return stage == kProgramInput ? input_dtype_ : std::nullopt;
  }
  const void* residual_of(std::size_t stage, int shard) const {
    return plans_.stages[stage].residual ? read(*plans_.stages[stage].residual, shard) : nullptr;
  }
  /// `number`: of a block of place_gradients, for the output of `stage`.
  std::byte* gradient_at(std::size_t number, std::size_t stage, int shard) const {
    return of_shard(gradients_.data() + gradient_offsets_[number], plans_.stages[stage].output_bytes, shard);
  }
  std::int64_t samples_of(int shard) const { return shards_.samples(batch_, shard); }
  RandomKey random_of(int shard) const {
    RandomKey random = random_;
    random.first += shard * shards_.size * random.stride;
    return random;
  }
  /// Calls visit(shard) for the shards of the batch that have samples, or for all.
  template <class Visit>
  void for_each_shard(bool all, const Visit& visit) const;
  PartialSumsTo partial_sums_of(const Gradients& gradients, std::optional<std::size_t> offset) const;
  LossPass pass_of(const LossTarget& target, int shard) const;
  /// The work of a backward pass between the observer's calls.
  struct BackwardWork {
    std::function<void()> head;
    std::function<void(std::size_t stage)> recompute;
    std::function<void(std::size_t stage)> stage;
  };
  void walk_backward(StepObserver& observer, const BackwardWork& work) const;
  std::vector<float*> buffers_of(const Weights& weights, std::size_t stage) const;
  void enqueue_stage(kernels::Stream& stream, const Weights& weights, std::size_t stage, bool recomputed);
  void enqueue_stage_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                              std::size_t stage, StepObserver& observer);
  void enqueue_sum(kernels::Stream& stream, std::size_t stage, int shard, const void* summand);
  void enqueue_head(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                    const LossTarget& target, StepObserver& observer);
  void enqueue_cut(kernels::Stream& stream, const void* x);
  void check_type_of(const Weights& weights) const;

  std::int64_t max_batch_ = 0;
  BatchShards shards_;
  std::int64_t batch_ = 0;           // samples of the last forward
  RandomKey random_;                 // of the last forward
  bool overwrites_buffers_ = false;  // in the last forward
  ProgramMode mode_;
  kernels::DType dtype_;
  const void* input_ = nullptr;                // the first shard's
  std::optional<kernels::DType> input_dtype_;  // if another than dtype_
  std::size_t input_bytes_ = 0;                // of a shard
  kernels::Buffer cut_input_;                  // all shards; empty if there is one
  ModelPlans plans_;
  ArenaLayout buffer_layout_;
  std::size_t first_of_backward_ = 0;  // stages before it run forward only
  Segmentation segments_;              // of the others
  ActivationLayout layout_;
  kernels::Buffer activations_;                // as layout_ says
  std::vector<std::size_t> last_readers_;      // of each stage's output
  std::vector<std::size_t> gradient_offsets_;  // of each stage's output; then, for each stage, of a summand
  kernels::Buffer gradients_;
  kernels::Buffer logits_;  // empty if the last stage writes them
  kernels::Buffer workspace_;
  kernels::Buffer partial_sums_;
  std::optional<kernels::Branch> branch_;  // of backward, where plans leave partial sums
};

}  // namespace gradring::nn
