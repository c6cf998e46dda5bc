// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"
#include "kernels/step_state/step_state.h"

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
/// copy, if there is one, becomes the new weights rounded to copy_dtype: what mixed precision computes with.
/// If state->non_finite, nothing changes.
///
/// Shapes    weights, gradients, m, v, copy: [elements].
/// Types     f32; copy: f16 or bf16.
/// Aliasing  the arrays do not overlap. m and v start as zeros. copy may be null.
/// Order     enqueued on the stream; reads *state there, does not advance it; returns at once.
/// Errors    InvalidArgument if a pointer is null, a beta is not in [0, 1), epsilon or weight_decay is negative, or a
///           copy is neither f16 nor bf16: in f32 it would be the weights again.
/// Numerics  deterministic, element by element; per step, m and v are off by at most 4 * 2^-24 of the largest term, and
///           w by 2^-24 of its size and 16 * 2^-24 of the step's. The copy is the weight that was written,
///           rounded to nearest, ties to even.
/// Cost      reads 16 and writes 12 bytes per element, and 2 for the copy.
/// Source    Kingma and Ba, "Adam", 2015 (arXiv 1412.6980); Loshchilov and Hutter, "Decoupled weight decay", 2019.
/// Example   tests/kernels/optimizers_test.cpp
struct Args {
  std::size_t elements = 0;
  float* weights = nullptr;
  const float* gradients = nullptr;
  float* m = nullptr;
  float* v = nullptr;
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

}  // namespace gradring::kernels::adam
