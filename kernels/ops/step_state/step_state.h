// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

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
  float gradient_norm = 0;  ///< of this step's gradients, unscaled and before clipping; 0 if it was not asked for
  std::int64_t first_non_finite = -1;  ///< which gradient, in the order in which they were searched; -1: none
  std::int64_t tiny_gradients = 0;     ///< how many were so small, times the loss scale, that f16 would lose them
};

/// What keeps the clipping factor finite where all gradients are 0.
inline constexpr double kNormFloor = 1e-6;

/// Makes the state ready for the optimizer of this step:
///   learning_rate = learning_rates[0][applied_steps], the last one from there on
///   rates[g] = learning_rates[g][applied_steps] for each parameter group g; the first group's is learning_rate
///   gradient_scale = 1 / loss_scale
/// With sum_of_squares, which is that of the gradients times loss_scale:
///   gradient_norm = sqrt(*sum_of_squares) / loss_scale
///   gradient_scale *= min(1, most_norm / (gradient_norm + kNormFloor)), unless non_finite
/// Enqueue it between the search for what is not finite and the optimizer's kernels.
///
/// Aliasing  all pointers are device memory; the state's other fields stay as they are.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if state or learning_rates is null, there is no learning rate or group, several groups
///           lack rates, or with sum_of_squares most_norm is not above 0.
/// Numerics  deterministic; without clipping the bits of PyTorch's GradScaler: gradient_scale is divided in double and
///           rounded once. Norm and factor are computed in double as well. A sum of squares that overflowed though no
///           gradient is infinite makes the factor 0, as in PyTorch.
/// Cost      one thread.
/// Source    torch.nn.utils.clip_grad_norm_.
struct PrepareArgs {
  StepState* state = nullptr;
  const float* learning_rates = nullptr;  ///< [groups, count]
  std::int32_t count = 0;                 ///< of a group
  const float* sum_of_squares = nullptr;  ///< null: the norm is not computed
  float most_norm = 0;                    ///< infinity: gradients are not clipped
  std::int32_t groups = 1;
  float* rates = nullptr;  ///< [groups]; null with one group: not written
};

/// What a step tells the host.
struct Report {
  StepState state;  ///< before it advanced
  float loss_sum = 0;
};

/// Where reports go: the n-th, from 0 on, to ring[n % count].
struct Reports {
  Report* ring = nullptr;  ///< device memory, or pinned memory that the host reads; null: nothing is reported
  std::uint32_t count = 0;
  std::uint32_t* written = nullptr;  ///< n, in device memory
  const float* loss_sum = nullptr;   ///< of the step, in device memory
};

/// How loss_scale follows the gradients: it falls when they overflow, and rises when they have not for a while.
struct LossScalePolicy {
  float growth_factor = 2;
  float backoff_factor = 0.5f;
  std::int32_t growth_interval = 2000;  ///< applied steps in a row before it rises
};

/// Ends a step: ++applied_steps, or, if non_finite, ++skipped_steps. If `dynamic`, sets the loss scale of the next
///   step: non_finite:  loss_scale *= backoff_factor,  growth_tracker = 0
///   otherwise:   ++growth_tracker; at growth_interval: growth_tracker = 0, and loss_scale *= growth_factor, unless the
///                product is infinite
/// Before that, it reports the step. Enqueue it after the optimizer's kernels of the step, or let the last of them do
/// it (optimizers.h).
///
/// Aliasing  *state is device memory; its other fields stay as they are, and without `dynamic` so does the loss scale.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if state is null, or reports lack a pointer or count; if dynamic, also unless growth_factor
///           is above 1 and finite, backoff_factor in (0, 1), and growth_interval at least 1.
/// Numerics  deterministic; for factors that f32 holds, the bits of PyTorch's GradScaler. As there, loss_scale has no
///           lower bound.
/// Cost      one thread.
/// Source    Micikevicius et al., "Mixed precision training", 2018 (arXiv 1710.03740), 3.2; PyTorch's GradScaler.
/// Example   tests/kernels/ops/step_state_test.cpp
struct AdvanceArgs {
  StepState* state = nullptr;
  LossScalePolicy policy{};
  bool dynamic = false;
  Reports reports{};
};

void check_args(const PrepareArgs& args);
void check_args(const AdvanceArgs& args);
void reference_prepare(const PrepareArgs& args);
void reference_advance(const AdvanceArgs& args);

struct Variant {
  std::string_view name;
  void (*prepare)(Stream&, const PrepareArgs&);
  void (*advance)(Stream&, const AdvanceArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace gradring::kernels::step_state
