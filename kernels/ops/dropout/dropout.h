// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

namespace gradring::kernels::dropout {

/// What decides about one element: four neighbours of a sample share a call of Philox4x32-10 (kernels/runtime/philox.h),
///   word(s, i) = philox(seed, counter)[i mod 4]
///   counter: i / 4, low 32 bits of s, *step, 2^31 + layer; 32 bits each, lowest first
/// where s is the number of the sample in the step's batch, over all ranks, and i the element's offset in it. No rank,
/// device, thread or micro-batch is in it, so every layout draws the same bits. The 2^31 keeps the counters apart from
/// those of generated data.
struct Draw {
  std::uint64_t seed = 0;
  std::int64_t layer = 0;              ///< number of the layer in its network, below 2^31
  const std::int32_t* step = nullptr;  ///< number of the optimizer step
  std::int64_t first = 0;              ///< number of the first sample
  std::int64_t stride = 1;             ///< from the number of a sample to that of the next
};

/// Drops each element with probability p, and scales the others so that the expected value stays:
///   y[r,i] = x[r,i] * (word(s, i) >= p * 2^32 ? 1 / (1 - p) : 0),   s = first + stride * r
/// The backward pass is the same call with dy for x and dx for y: nothing is saved, the mask is computed again.
///
/// Shapes    x, y: [samples, elements], contiguous.
/// Types     f32, f16 or bf16, equal for x and y; the product is taken in f32 and rounded once.
/// Aliasing  y may be x. *step is device memory, and is read when the kernel runs: a captured graph that is replayed
///           finds the next step there.
/// Order     enqueued on the stream; returns at once. No elements: nothing happens.
/// Errors    InvalidArgument if an extent is negative, elements is above 2^34, p is not in [0, 1), layer not in
///           [0, 2^31), a pointer is null that may not be, x and y overlap in part, or the type is another one.
/// Numerics  deterministic, equal bits on every device; p is rounded to a multiple of 2^-32. As in PyTorch, a dropped
///           NaN or infinity stays visible: its product with 0 is NaN.
/// Cost      reads and writes samples * elements * size_of(dtype) bytes; 5 multiplications of 32 x 32 bits an element.
/// Source    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR 2014;
///           torch.nn.Dropout; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
/// Example   tests/kernels/ops/dropout_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t samples = 0;
  std::int64_t elements = 0;  ///< of one sample
  const void* x = nullptr;
  void* y = nullptr;
  double p = 0.5;
  Draw draw{};
};

/// The words below it are dropped.
std::uint32_t threshold_of(double p);

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::dropout
