// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"
#include "kernels/step_state/step_state.h"

namespace gradring::kernels::ema {

/// One step of an exponential moving average of weights, after the optimizer's:
///   average += (1 - decay) * (weights - average)        in the first applied step: average = weights
/// If state->non_finite, nothing changes.
///
/// Shapes    weights, average: [elements].
/// Types     f32.
/// Aliasing  the arrays do not overlap.
/// Order     enqueued on the stream; reads *state there, does not advance it; returns at once.
/// Errors    InvalidArgument if a pointer is null, or decay is not in [0, 1).
/// Numerics  deterministic, element by element: the same bits wherever a run of elements begins. 1 - decay is rounded
///           once to f32; per step, within 4 * 2^-24 of the larger of the two numbers.
/// Cost      reads 8 and writes 4 bytes per element.
/// Source    Polyak, Juditsky: "Acceleration of stochastic approximation by averaging", 1992; torch.optim.swa_utils.
/// Example   tests/kernels/elementwise_test.cpp
struct Args {
  std::size_t elements = 0;
  const float* weights = nullptr;
  float* average = nullptr;
  const step_state::StepState* state = nullptr;
  double decay = 0;
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

}  // namespace gradring::kernels::ema
