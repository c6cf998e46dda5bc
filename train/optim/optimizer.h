// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/step_state/step_state.h"

namespace gradring::train {

/// A second place for the new weights, rounded to f16 or bf16: what mixed precision computes with. data null: none.
struct RoundedCopy {
  kernels::DType dtype = kernels::DType::f32;
  void* data = nullptr;
};

/// What an optimizer remembers from step to step: one float for every weight that it updates.
struct OptimizerState {
  std::string name;  ///< PyTorch's: exp_avg, momentum_buffer, ...
  float* data = nullptr;
};

/// A run of weights that an optimizer updates, in device memory.
struct UpdateSlice {
  float* weights = nullptr;
  const float* gradients = nullptr;
  RoundedCopy copy;
  std::size_t state_offset = 0;  ///< where their state begins, in elements
  std::size_t elements = 0;
  bool decays = true;  ///< weight decay is for them, too
};

/// The state that averages weights (--ema).
inline constexpr std::string_view kEmaState = "ema";

/// Turns gradients into new weights: one kernel a slice, which is the whole arena where nothing is shared out or left out.
/// Owns its state (moments, momentum).
///
/// Order     enqueued on the stream; returns at once.
/// Numerics  elementwise and deterministic, so equal gradients keep replicas bit-identical.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Weights were drawn or loaded: for who remembers them.
  virtual void enqueue_begin(kernels::Stream& /*stream*/, std::span<const UpdateSlice> /*slices*/) {}
  /// weights -= update(gradients * state->gradient_scale), and copy = weights, unless state->non_finite. `state` is in
  /// device memory; its count of applied steps is advanced by the caller afterwards.
  virtual void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                            const kernels::step_state::StepState* state) = 0;
  /// All that it remembers, in device memory: to be saved, or overwritten, between steps.
  virtual std::vector<OptimizerState> states() = 0;
  /// What that takes.
  virtual std::size_t bytes() const = 0;
};

/// What a user may say about the optimizer. Numbers that an optimizer has no use for are refused where options are read.
struct OptimizerSpec {
  std::string name = "adam";  ///< adam, adamw, sgd
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool no_bias_decay = false;  ///< it leaves biases alone
  double ema = 0;              ///< decay of an average of the weights; 0: there is none
};

/// An optimizer of `elements` weights.
///
/// Errors    InvalidArgument for an unknown name; DeviceError if there is no memory for the state.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, const kernels::KernelSet& kernels,
                                          kernels::Device& device, std::size_t elements);

}  // namespace gradring::train
