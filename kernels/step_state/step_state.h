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
  float loss_scale = 1;  ///< what the loss kernel multiplies gradients by, so that f16 does not lose small ones
  std::int32_t growth_tracker = 0;  ///< steps applied since the last overflow or growth
  std::int32_t skipped_steps = 0;
};

/// How loss_scale follows the gradients: it falls when they overflow, and rises when they have not for a while.
struct LossScalePolicy {
  float growth_factor = 2;
  float backoff_factor = 0.5f;
  std::int32_t growth_interval = 2000;  ///< applied steps in a row before it rises
};

/// Ends a step: ++applied_steps, or, if non_finite, ++skipped_steps. If `dynamic`, sets the scales of the next step:
///   non_finite:  loss_scale *= backoff_factor,  growth_tracker = 0
///   otherwise:   ++growth_tracker; at growth_interval: growth_tracker = 0, and loss_scale *= growth_factor, unless the
///                product is infinite
///   gradient_scale = 1 / loss_scale
/// Enqueue it after the optimizer's kernels of the step.
///
/// Aliasing  *state is device memory; its other fields stay as they are, and without `dynamic` so do the scales.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if state is null; if dynamic, also unless growth_factor is above 1 and finite,
///           backoff_factor in (0, 1), and growth_interval at least 1.
/// Numerics  deterministic; for factors that f32 holds, the bits of PyTorch's GradScaler: gradient_scale is divided in
///           double and rounded once.
///           As there, loss_scale has no lower bound.
/// Cost      one thread.
/// Source    Micikevicius et al., "Mixed precision training", 2018 (arXiv 1710.03740), 3.2; PyTorch's GradScaler.
/// Example   tests/kernels/step_state/step_state_test.cpp
struct Args {
  StepState* state = nullptr;
  LossScalePolicy policy;
  bool dynamic = false;
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
