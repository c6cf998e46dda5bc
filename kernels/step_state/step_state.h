// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::step_state {

/// What the device decides about a step, in device memory, so that the host never has to wait for it.
struct StepState {
  std::int32_t applied_steps = 0;  ///< optimizer steps taken so far; skipped ones do not count
  std::int32_t non_finite = 0;     ///< 1: this step's gradients hold an infinity or NaN, so the step is skipped
  float gradient_scale = 1;  ///< what the optimizer multiplies gradients by: 1 / loss_scale, times the clipping factor
  float learning_rate = 0;
};

/// Ends a step: ++state->applied_steps, unless state->non_finite. Enqueue it after the optimizer's kernels of the step.
///
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if state is null.
/// Example   tests/kernels/step_state/step_state_test.cpp
struct Args {
  StepState* state = nullptr;
};

/// Errors    InvalidArgument if `args` break the contract above. Every variant calls it before it launches.
void check_args(const Args& args);

/// The truth: plain loops on the host, sums in double, run before the call returns.
namespace reference {
void advance(const Args& args);
}  // namespace reference

/// One implementation in the table.
struct Variant {
  std::string_view name;
  void (*advance)(Stream&, const Args&);
  bool (*supports)(const Device&, DType);
};

inline namespace GRADRING_KERNEL_COPY {
/// The ladder, simplest first; never empty. One table per copy of the kernel text (see kernels/README.md).
std::span<const Variant> variants();
}  // namespace GRADRING_KERNEL_COPY

}  // namespace gradring::kernels::step_state
