// SPDX-License-Identifier: Apache-2.0
// Idea: what is not a product is a loop over elements, and what the host does not know (norms, the learning rate,
//   whether the step is skipped) is read from device memory. The products themselves are those of gemm.
// Mapping: grid-stride, one element per thread and iteration (GPU); one contiguous run per thread (CPU).
// Traffic and bound: per element, momentum reads 8 bytes and writes 8; normalize reads 4 and writes 2 in 16 bits;
//   combine reads 6 and writes 2; apply reads 6 and writes 4, and 2 for a copy; bound by memory or by the launch.
// Still slow because: one launch for each, per matrix; the product that makes `products` could combine them while it
//   has them in registers.

#include "kernels/lib/element.h"
#include "kernels/ops/muon/muon.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::muon {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <bool kMomentum>
__global__ void muon_momentum_flat_kernel(std::size_t elements, const float* __restrict__ gradients,
                                          float* __restrict__ buffer, float* __restrict__ update,
                                          const step_state::StepState* __restrict__ state, float momentum,
                                          bool nesterov) {
  if (state->non_finite) return;
  const float scale = state->gradient_scale;
  for (std::size_t i : simt::grid_range(elements)) {
    const float g = gradients[i] * scale;
    if constexpr (kMomentum) {
      const float b = fmaf(momentum, buffer[i], g);
      buffer[i] = b;
      update[i] = nesterov ? fmaf(momentum, b, g) : b;
    } else {
      update[i] = g;
    }
  }
}

template <class T>
__global__ void muon_normalize_flat_kernel(std::size_t elements, const float* __restrict__ update,
                                           const float* __restrict__ sum_of_squares, T* __restrict__ x) {
  const float root = sqrtf(*sum_of_squares);
  const float norm = root < kLeastNorm ? kLeastNorm : root;  // not fmaxf(): NaN must stay
  for (std::size_t i : simt::grid_range(elements)) x[i] = lib::from_f32<T>(update[i] / norm);
}

template <class T>
__global__ void muon_combine_flat_kernel(std::size_t elements, const T* x, const float* __restrict__ products, T* y,
                                         float alpha, float beta) {
  for (std::size_t i : simt::grid_range(elements))
    y[i] = lib::from_f32<T>(fmaf(alpha, lib::to_f32(x[i]), beta * products[i]));
}

/// What `apply` needs of its arguments, in float.
struct Rule {
  float factor, weight_decay, norm;
};

/// Copy is the type of the copy; float: no copy is made, and `copy` is not touched.
template <class T, class Copy>
__global__ void muon_apply_flat_kernel(std::size_t elements, float* __restrict__ weights, const T* __restrict__ x,
                                       Copy* __restrict__ copy, const step_state::StepState* __restrict__ state,
                                       const float* __restrict__ learning_rate,
                                       const float* __restrict__ weight_sum_of_squares, Rule rule) {
  const float lr = *learning_rate;
  if (state->non_finite || lr == 0) return;
  float shrink = 1.0f - lr * rule.weight_decay;
  if (weight_sum_of_squares && *weight_sum_of_squares > 0) shrink = rule.norm / sqrtf(*weight_sum_of_squares);
  const float step = lr * rule.factor;
  for (std::size_t i : simt::grid_range(elements)) {
    const float w = fmaf(-step, lib::to_f32(x[i]), shrink * weights[i]);
    weights[i] = w;
    if constexpr (sizeof(Copy) < sizeof(float)) copy[i] = lib::from_f32<Copy>(w);
  }
}

void momentum(Stream& stream, const MomentumArgs& args) {
  check_args(args);
  lib::with_bool(args.momentum > 0, [&](auto has_momentum) {
    simt::launch_flat<muon_momentum_flat_kernel<has_momentum.value>>(
        stream, simt::grid_for(stream, args.elements), args.elements, args.gradients, args.buffer, args.update,
        args.state, static_cast<float>(args.momentum), args.nesterov);
  });
}

void normalize(Stream& stream, const NormalizeArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<muon_normalize_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements), args.elements,
                                                     args.update, args.sum_of_squares, static_cast<T*>(args.x));
  });
}

void combine(Stream& stream, const CombineArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<muon_combine_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements), args.elements,
                                                   static_cast<const T*>(args.x), args.products,
                                                   static_cast<T*>(args.y), args.alpha, args.beta);
  });
}

void apply(Stream& stream, const ApplyArgs& args) {
  check_args(args);
  const Rule rule{static_cast<float>(args.factor), static_cast<float>(args.weight_decay),
                  static_cast<float>(args.norm)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_element(args.copy ? args.copy_dtype : DType::f32, [&]<class Copy>(lib::Element<Copy>) {
      simt::launch_flat<muon_apply_flat_kernel<T, Copy>>(
          stream, simt::grid_for(stream, args.elements), args.elements, args.weights, static_cast<const T*>(args.x),
          static_cast<Copy*>(args.copy), args.state, args.learning_rate, args.weight_sum_of_squares, rule);
    });
  });
}

}  // namespace

Variant flat() { return {"flat", momentum, normalize, combine, apply, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::muon
