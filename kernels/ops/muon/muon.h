// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/lib/variant.h"
#include "kernels/ops/step_state/step_state.h"

/// What a step of Muon needs besides matrix products and sums of squares. Muon replaces the averaged gradient U of a
/// matrix by a matrix with the same singular vectors, whose singular values are all about 1 (train/core/optim/muon.h):
///
///   momentum    U from the gradient
///   normalize   X = U / |U|
///   combine     A = X X^T,  B = b A + c A A,  X = a X + B X,  a few times (Newton-Schulz)
///   apply       W -= lr * factor * X
///
/// Shapes    arrays: [elements]; update, weights, gradients, buffer and products in f32.
/// Aliasing  the arrays do not overlap unless said otherwise.
/// Order     enqueued on the stream; returns at once. Zero elements: nothing happens.
/// Errors    InvalidArgument if a pointer is null, a type is not one of f32, f16 and bf16, or a copy is neither f16 nor
///           bf16.
/// Numerics  deterministic, element by element: the same bits wherever a run of elements begins.
/// Cost      bound by memory; each array is read or written once.
/// Source    Jordan and others: "Muon: an optimizer for hidden layers in neural networks", 2024; torch.optim.Muon.
/// Example   tests/kernels/ops/muon_test.cpp
namespace gradring::kernels::muon {

/// With g = gradient * gradient_scale:
///   buffer = momentum * buffer + g,  update = nesterov ? g + momentum * buffer : buffer
/// buffer starts as zeros. If state->non_finite, nothing changes. Without momentum update = g, and buffer may be null.
struct MomentumArgs {
  std::size_t elements = 0;
  const float* gradients = nullptr;
  float* buffer = nullptr;
  float* update = nullptr;
  const step_state::StepState* state = nullptr;
  double momentum = 0;
  bool nesterov = false;
};

/// x = update / max(sqrt(sum_of_squares), 1e-7), rounded to `dtype`.
struct NormalizeArgs {
  DType dtype = DType::f32;
  std::size_t elements = 0;
  const float* update = nullptr;
  const float* sum_of_squares = nullptr;  ///< of the update, one number in device memory
  void* x = nullptr;
};

/// y = alpha * x + beta * products, rounded once to `dtype`. y may be x.
struct CombineArgs {
  DType dtype = DType::f32;
  std::size_t elements = 0;
  const void* x = nullptr;
  const float* products = nullptr;
  void* y = nullptr;
  float alpha = 1;
  float beta = 1;
};

/// w = shrink * w - lr * factor * x, where shrink is 1 - lr * weight_decay, or with weight_sum_of_squares
/// norm / sqrt(weight_sum_of_squares). `copy` as in kernels/ops/optimizers. If state->non_finite or lr is 0, nothing
/// changes.
struct ApplyArgs {
  DType dtype = DType::f32;  ///< of x
  std::size_t elements = 0;
  float* weights = nullptr;
  const void* x = nullptr;
  const step_state::StepState* state = nullptr;
  const float* learning_rate = nullptr;  ///< one number in device memory
  double factor = 1;
  double weight_decay = 0;
  const float* weight_sum_of_squares = nullptr;  ///< of the whole matrix, one number in device memory
  double norm = 0;
  DType copy_dtype = DType::f32;
  void* copy = nullptr;
};

void check_args(const MomentumArgs& args);
void check_args(const NormalizeArgs& args);
void check_args(const CombineArgs& args);
void check_args(const ApplyArgs& args);
void reference_momentum(const MomentumArgs& args);
void reference_normalize(const NormalizeArgs& args);
void reference_combine(const CombineArgs& args);
void reference_apply(const ApplyArgs& args);

struct Variant {
  std::string_view name;
  void (*momentum)(Stream&, const MomentumArgs&);
  void (*normalize)(Stream&, const NormalizeArgs&);
  void (*combine)(Stream&, const CombineArgs&);
  void (*apply)(Stream&, const ApplyArgs&);
  bool (*supports)(const Device&, DType);
};

/// The least norm that `normalize` divides by.
inline constexpr float kLeastNorm = 1e-7f;

}  // namespace gradring::kernels::muon
