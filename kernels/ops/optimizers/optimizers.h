// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/lib/variant.h"
#include "kernels/ops/step_state/step_state.h"

namespace gradring::kernels {

/// What the last update of a step does besides: it advances the state, as step_state's `advance` after it would.
struct StepEnd {
  step_state::AdvanceArgs advance{};  ///< of the update's state; a null state: the update is not the last
  unsigned* arrivals = nullptr;       ///< a word of device memory: 0, and 0 again afterwards
};

}  // namespace gradring::kernels

/// One step of each optimizer over an arena of all parameters, and the average of the weights. Common to all:
///
/// Shapes    arrays: [elements], f32; copy, the weights rounded to copy_dtype that mixed precision computes with: f16
///           or bf16, or null. learning_rate: one number in device memory, that of these weights; null: the state's.
/// Aliasing  the arrays do not overlap.
/// Order     enqueued on the stream; reads *state there; returns at once. If state->non_finite, no array changes.
/// Errors    InvalidArgument if a pointer is null, a hyperparameter is out of its range, or a copy is neither f16 nor
///           bf16: in f32 it would be the weights again; or the end of a step is of another state, or lacks `arrivals`.
/// Numerics  deterministic, element by element: the same bits wherever a run of elements begins. The copy is the weight
///           that was written, rounded to nearest, ties to even.
/// Example   tests/kernels/ops/optimizers_test.cpp
namespace gradring::kernels::adam {

/// What stays the same from step to step. Doubles, because 1 - 0.999 in f32 is already off by a hundred-thousandth.
struct Hyper {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  ///< true: AdamW, the decay shrinks the weight; false: L2, the decay joins the gradient
};

/// One step of Adam or AdamW over an arena, as in PyTorch.
/// With t = applied_steps + 1, g = gradient * gradient_scale:
///   AdamW:  w *= 1 - lr * weight_decay              L2:  g += weight_decay * w
///   m = beta1 * m + (1 - beta1) * g                 v = beta2 * v + (1 - beta2) * g^2
///   w -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
/// m and v start as zeros.
///
/// Errors    also InvalidArgument if a beta is not in [0, 1), epsilon or weight_decay is negative.
/// Numerics  per step, m and v are off by at most 4 * 2^-24 of the largest term, and w by 2^-24 of its size and
///           16 * 2^-24 of the step's.
/// Cost      reads 16 and writes 12 bytes per element, and 2 for the copy.
/// Source    Kingma and Ba, "Adam", 2015 (arXiv 1412.6980); Loshchilov and Hutter, "Decoupled weight decay", 2019.
struct Args {
  std::size_t elements = 0;
  float* weights = nullptr;
  const float* gradients = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  const step_state::StepState* state = nullptr;
  const float* learning_rate = nullptr;
  Hyper hyper;
  DType copy_dtype = DType::f32;
  void* copy = nullptr;
  StepEnd end{};
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::adam

namespace gradring::kernels::sgd {

/// What stays the same from step to step.
struct Hyper {
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool decoupled = false;  ///< true: SGDW, the decay shrinks the weight; false: L2, the decay joins the gradient
};

/// One step of stochastic gradient descent over an arena, as in PyTorch. With g = gradient * gradient_scale:
///   SGDW:  w *= 1 - lr * weight_decay               L2:  g += weight_decay * w
///   buffer = momentum * buffer + (1 - dampening) * g         (in the first applied step: buffer = g)
///   g = nesterov ? g + momentum * buffer : buffer            (without momentum there is no buffer, and g stays)
///   w -= lr * g
/// momentum_buffer may be null if momentum is 0; it need not be initialised.
///
/// Errors    also InvalidArgument if momentum or weight_decay is negative, or nesterov lacks momentum > 0 and
///           dampening = 0.
/// Numerics  per step, within 8 * 2^-24 of the largest term.
/// Cost      reads 12 and writes 8 bytes per element (8 and 4 without momentum), and 2 for the copy.
/// Source    Sutskever et al., "On the importance of initialization and momentum", 2013, in PyTorch's form; Loshchilov
///           and Hutter, "Decoupled weight decay", 2019, in the form of timm's SGDW.
struct Args {
  std::size_t elements = 0;
  float* weights = nullptr;
  const float* gradients = nullptr;
  float* momentum_buffer = nullptr;
  const step_state::StepState* state = nullptr;
  const float* learning_rate = nullptr;
  Hyper hyper;
  DType copy_dtype = DType::f32;
  void* copy = nullptr;
  StepEnd end{};
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::sgd

namespace gradring::kernels::ema {

/// One step of an exponential moving average of weights, after the optimizer's:
///   average += (1 - decay) * (weights - average)        in the first applied step: average = weights
///
/// Errors    also InvalidArgument if decay is not in [0, 1).
/// Numerics  1 - decay is rounded once to f32; per step, within 4 * 2^-24 of the larger of the two numbers.
/// Cost      reads 8 and writes 4 bytes per element.
/// Source    Polyak, Juditsky: "Acceleration of stochastic approximation by averaging", 1992; torch.optim.swa_utils.
/// Example   tests/kernels/ops/elementwise_test.cpp
struct Args {
  std::size_t elements = 0;
  const float* weights = nullptr;
  float* average = nullptr;
  const step_state::StepState* state = nullptr;
  double decay = 0;
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::ema
