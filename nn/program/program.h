// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/models/model.h"
#include "nn/parameter/gradients.h"
#include "nn/parameter/weights.h"
#include "nn/program/activation_layout.h"
#include "nn/program/checkpointing.h"
#include "nn/program/model_plans.h"
#include "nn/program/step_observer.h"

namespace gradring::nn {

enum class ProgramMode : std::uint8_t {
  training,    ///< keeps activations for backward
  evaluation,  ///< forward and loss only: two activations are alive at a time
};

/// Bytes that a program holds.
struct ProgramMemory {
  std::size_t activations = 0;           ///< outputs of plans, what they save for backward, logits
  std::size_t activation_gradients = 0;  ///< two, used in turn
  std::size_t workspace = 0;

  std::size_t total() const { return activations + activation_gradients + workspace; }
};

/// Which layers a plan computes, and what computes it (Plan::description). The loss is a plan, too, be it without layers.
struct PlanDescription {
  std::vector<std::string> layers;
  std::string by;
};

/// The device that a program lies on, as it allocates for each purpose: one and the same, or two that count apart
/// (kernels/runtime/counted_device.h).
struct ProgramDevices {
  kernels::Device& activations;
  kernels::Device& workspace;

  ProgramDevices(kernels::Device& device)  // NOLINT(google-explicit-constructor): a device is both
      : activations(device), workspace(device) {}
  ProgramDevices(kernels::Device& for_activations, kernels::Device& for_workspace)
      : activations(for_activations), workspace(for_workspace) {}
};

/// A model made ready to run on one device by one backend, for batches of up to `max_batch` samples: the list of plans,
/// and the memory of all activations, allocated once.
///
///   x -> [plan 0] -> a0 -> [plan 1] -> a1 ... -> logits -> loss
///          p0,p1            -                              dlogits
///
/// In training mode a backend may compute the last layer with the loss: then forward ends before it. With checkpointing, forward
/// keeps fewer activations, and backward computes the others once more: the same work on the same values, so with the same bits.
///
/// Order     every member enqueues on `stream` and returns.
/// Threads   one thread at a time; all calls of one step on one stream.
class Program {
 public:
  /// `dtype` is what it computes in: f32, f16 or bf16.
  ///
  /// Errors    InvalidArgument if the layers do not fit each other or the backend, or the activations the budget of
  ///           `checkpointing`, which is for training; DeviceError if there is no memory.
  Program(const Model& model, std::int64_t max_batch, ProgramMode mode, Backend& backend, const ProgramDevices& devices,
          kernels::DType dtype = kernels::DType::f32, const Checkpointing& checkpointing = {});

  /// Runs the model over `batch` samples at `x` (NHWC). x and weights are of the program's type.
  void enqueue_forward(kernels::Stream& stream, const Weights& weights, const void* x, std::int64_t batch,
                       StepObserver& observer);

  struct LossTarget {
    const std::int32_t* labels = nullptr;
    float scale = 1;
    const float* loss_scale = nullptr;  ///< on the device, multiplies the gradient beside `scale`; null: 1
    float* loss_sum = nullptr;
    std::int32_t* correct = nullptr;
  };
  /// The cross-entropy of the last forward, in evaluation mode.
  void enqueue_loss(kernels::Stream& stream, const LossTarget& target);

  /// The cross-entropy of the last forward, in training mode, and of its mean the gradients of every parameter, f32 and
  /// overwritten; `observer` hears of each as its last work is enqueued, in ready order.
  void enqueue_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                        const LossTarget& target, StepObserver& observer);

  /// A forward and backward pass over no samples: gradients and riders become 0, and `observer` hears what it hears of any
  /// other pass.
  void enqueue_nothing(kernels::Stream& stream, const Gradients& gradients, StepObserver& observer);

  /// Logits: [batch, classes] on the device, of the program's type. They are there after a forward pass in evaluation mode,
  /// after forward and backward in training mode.
  const void* logits() const;
  kernels::DType dtype() const { return dtype_; }
  std::int64_t max_batch() const { return max_batch_; }
  ProgramMemory memory() const;
  /// How backward's stages are cut: one segment where nothing is computed twice.
  const Segmentation& segments() const { return segments_; }

  /// The parameters that are used at once, plan by plan, first layer first; some have none.
  std::vector<std::vector<int>> parameters_of_plans() const;

  /// Its plans, first layer first, the loss last.
  std::vector<PlanDescription> description() const;

  /// Parameters in the order in which backward finishes their gradients: last layer first, each bias before its weight.
  static std::vector<int> ready_order(const Model& model);

 private:
  std::byte* output_of(std::size_t stage) const { return activations_.data() + layout_.stages[stage].output; }
  std::byte* saved_of(std::size_t stage) const { return activations_.data() + layout_.stages[stage].saved; }
  const void* input_of(std::size_t stage) const { return stage == 0 ? input_ : output_of(stage - 1); }
  LossPass pass_of(const LossTarget& target) const;
  /// What a backward pass does, between what it tells.
  struct BackwardWork {
    std::function<void()> head;
    std::function<void(std::size_t stage)> again;  ///< forward once more
    std::function<void(std::size_t stage)> stage;
  };
  void walk_backward(StepObserver& observer, const BackwardWork& work) const;
  void enqueue_stage(kernels::Stream& stream, const Weights& weights, std::size_t stage);
  void enqueue_stage_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                              std::size_t stage);
  void enqueue_head(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                    const LossTarget& target);
  void check_type_of(const Weights& weights) const;

  std::int64_t max_batch_ = 0;
  std::int64_t batch_ = 0;  // of the last forward
  ProgramMode mode_;
  kernels::DType dtype_;
  const void* input_ = nullptr;
  ModelPlans plans_;
  Segmentation segments_;
  ActivationLayout layout_;
  kernels::Buffer activations_;  // as layout_ says
  std::array<kernels::Buffer, 2> gradients_;
  kernels::Buffer logits_;  // empty where the last stage leaves them
  kernels::Buffer workspace_;
};

}  // namespace gradring::nn
