// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"
#include "kernels/step_state/step_state.h"

namespace gradring::kernels::sgd {

/// What stays the same from step to step.
struct Hyper {
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// One step of stochastic gradient descent over an arena, as in PyTorch. With g = gradient * gradient_scale:
///   g += weight_decay * w
///   buffer = momentum * buffer + (1 - dampening) * g         (in the first applied step: buffer = g)
///   g = nesterov ? g + momentum * buffer : buffer            (without momentum there is no buffer, and g stays)
///   w -= lr * g
/// copy, if there is one, becomes the new weights rounded to copy_dtype: what mixed precision computes with.
/// If state->non_finite, nothing changes.
///
/// Shapes    weights, gradients, momentum_buffer, copy: [elements].
/// Types     f32; copy: f16 or bf16.
/// Aliasing  the arrays do not overlap. momentum_buffer may be null if momentum is 0; it need not be initialised. copy
///           may be null.
/// Order     enqueued on the stream; reads *state there, does not advance it; returns at once.
/// Errors    InvalidArgument if a pointer is null, momentum or weight_decay is negative, nesterov lacks momentum > 0
///           and dampening = 0, or a copy is neither f16 nor bf16: in f32 it would be the weights again.
/// Numerics  deterministic, element by element; per step, within 8 * 2^-24 of the largest term. The copy is
///           the weight that was written, rounded to nearest, ties to even.
/// Cost      reads 12 and writes 8 bytes per element (8 and 4 without momentum), and 2 for the copy.
/// Source    Sutskever et al., "On the importance of initialization and momentum", 2013, in PyTorch's form.
/// Example   tests/kernels/optimizers_test.cpp
struct Args {
  std::size_t elements = 0;
  float* weights = nullptr;
  const float* gradients = nullptr;
  float* momentum_buffer = nullptr;
  const step_state::StepState* state = nullptr;
  Hyper hyper;
  DType copy_dtype = DType::f32;
  void* copy = nullptr;
};

/// Errors    InvalidArgument if `args` break the contract; every variant calls it first.
void check_args(const Args& args);

/// Plain loops on the host, sums in double; synchronous.
namespace reference {
void run(const Args& args);
}  // namespace reference

struct Variant {
  std::string_view name;
  void (*run)(Stream&, const Args&);
  bool (*supports)(const Device&, DType);
};

inline namespace GRADRING_KERNEL_COPY {
/// Simplest first; never empty (kernel_set.cpp).
std::span<const Variant> variants();
}  // namespace GRADRING_KERNEL_COPY

}  // namespace gradring::kernels::sgd
