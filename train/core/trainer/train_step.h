// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "kernels/ops/step_state/step_state.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"
#include "nn/program/program.h"
#include "train/core/ddp/compute_weights.h"
#include "train/core/ddp/gradient_reducer.h"
#include "train/core/ddp/non_finite_check.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train {

/// How the loss is multiplied before the backward pass, so that small gradients do not vanish in f16; the optimizer
/// divides by the same factor. bf16 has f32's range and needs none.
///
/// Source    Micikevicius and others, "Mixed precision training", 2018; the rule is that of PyTorch's GradScaler.
struct LossScaling {
  bool dynamic = false;  ///< halve on overflow, double after a while without; else the scale is 1
  float initial = 65536;
  kernels::step_state::LossScalePolicy policy;

  /// The scale of the first step.
  float first() const { return dynamic ? initial : 1.0f; }
};

/// If gradients overflow even at this scale, a smaller one does not help.
inline constexpr float kLeastLossScale = 1.0f / 65536;

/// How a step updates the weights.
struct StepSpec {
  LossScaling loss_scaling;
  /// Of applied steps, the last of which holds on: a table for each parameter group, or one for all.
  std::vector<float> learning_rates = {1e-3f};
  std::size_t groups = 1;  ///< tables of equal length
  double clip_norm = 0;    ///< global norm of the gradients; 0: no clipping
  double label_smoothing = 0;
  bool recorded = false;   ///< passes of one shape are recorded once and launched as one (a CUDA graph)
  std::uint64_t seed = 0;  ///< of layers that draw random numbers
};

/// What a step works with. All of it must outlive the step.
struct StepParts {
  kernels::Device& device;
  kernels::Stream& stream;
  const kernels::KernelSet& kernels;
  nn::StepProgram& program;
  ComputeWeights& weights;
  DistributedDataParallel& ddp;
  GradientReducer& reducer;
  NonFiniteCheck& check;
  Optimizer& optimizer;
  std::vector<UpdateSlice> slices;  ///< that the optimizer updates
};

/// Times of the parts of a step, summed over its passes, without waits for other ranks.
struct StepPhases {
  std::chrono::nanoseconds forward{0};    ///< with the preparation of the batch
  std::chrono::nanoseconds backward{0};   ///< with the loss
  std::chrono::nanoseconds optimizer{0};  ///< with the check for non-finite gradients
};

/// In seconds; nothing if the phases are unknown.
inline std::optional<double> seconds_of(const std::optional<StepPhases>& phases,
                                        std::chrono::nanoseconds StepPhases::*phase) {
  if (!phases) return std::nullopt;
  return std::chrono::duration<double>(*phases.*phase).count();
}

/// Measures phases on a stream that runs its work in the calling thread, as the compute stream of a CPU does.
///
/// Cost      a clock read for each call.
/// Threads   the trainer's. `ddp` must outlive it.
class PhaseClock {
 public:
  explicit PhaseClock(const DistributedDataParallel& ddp) : ddp_(ddp) {}

  void begin() { last_ = worked(); }
  /// Adds the time since the last call of either to `phase`.
  void end(std::chrono::nanoseconds& phase) {
    const std::chrono::nanoseconds now = worked();
    phase += now - last_;
    last_ = now;
  }

 private:
  /// A clock that stops while the compute stream waits for other ranks.
  std::chrono::nanoseconds worked() const {
    return std::chrono::steady_clock::now().time_since_epoch() - ddp_.waited();
  }

  const DistributedDataParallel& ddp_;
  std::chrono::nanoseconds last_{0};
};

/// The result of a step.
struct StepResult {
  double loss = 0;                 ///< mean over the global batch, before the update; the same bits on every rank
  float loss_scale = 1;            ///< of this step
  float gradient_norm = 0;         ///< of the mean gradient, before clipping
  float learning_rate = 0;         ///< as the device read it
  std::int64_t applied_steps = 0;  ///< before this one, skipped steps excluded
  bool skipped = false;            ///< a gradient was not finite, so no weight changed
  int non_finite = -1;             ///< the parameter with the first non-finite gradient, in backward order; -1: unknown
  double underflow = 0;            ///< share of gradients too small for f16 (NonFiniteCheck)
  std::optional<StepPhases> phases{};  ///< on a CPU only: the host does not see when a GPU works
};

/// One optimizer step: batch to the device, forward, loss, backward with all-reduce, update. A step may have several
/// passes, whose gradients are accumulated; the last one is followed by the update.
///
/// The host need not wait for a step before it enqueues the next: results are kept until they are taken, up to a limit.
/// The summed gradients are checked before the update. The device itself decides whether to skip it, and every rank
/// decides alike, since the sums have the same bits everywhere.
class TrainStep {
 public:
  TrainStep(StepSpec spec, const StepParts& parts);

  struct Input {
    DeviceBatch& batch;               ///< the same object for all steps
    std::int64_t count = 0;           ///< samples of the batch; 0: an empty batch
    std::int64_t global_samples = 0;  ///< of the step, over all ranks
    std::int64_t divisor = 0;         ///< of this rank's sum of gradients; 0: global_samples
    GradientReducer::Pass pass = {};
    std::int64_t first = 0;   ///< of the batch's samples, in the global order of the step
    std::int64_t stride = 1;  ///< there, from one sample of the batch to the next
  };
  /// Enqueues a pass, and after a step's last one the update.
  ///
  /// Errors    InvalidArgument if full(); comm::CommError, DeviceError, also of earlier steps.
  void enqueue(const Input& input);
  /// Whether a result must be taken before another step.
  bool full() const;
  /// The oldest result not taken yet, if it is ready; never blocks.
  std::optional<StepResult> poll();
  /// The same; blocks until it is ready. A step must be enqueued.
  StepResult wait(Deadline deadline);
  /// Whether the step after a skipped one has a smaller loss scale.
  bool scales_loss() const { return spec_.loss_scaling.dynamic; }
  /// Whether all results were taken.
  bool idle() const { return in_flight_.empty(); }

  /// The device's state between steps: counts of steps, and the loss scale.
  ///
  /// Errors    InvalidArgument unless idle().
  kernels::step_state::StepState state(Deadline deadline);
  /// Gives a state that is resumed from the first loss scale of this training, unless both trainings scale it: a scale
  /// belongs to a precision. `scaled`: whether the training did that saved the state.
  void resume_loss_scale(kernels::step_state::StepState& state, bool scaled) const;
  /// Resumes from `state`.
  void set_state(const kernels::step_state::StepState& state, Deadline deadline);

  /// The random numbers of a pass between steps: those of the next step, from number `first` of its samples on.
  nn::RandomKey random_key(std::int64_t first, std::int64_t stride) const {
    return {.seed = spec_.seed, .step = &device_state()->applied_steps, .first = first, .stride = stride};
  }

  /// Records its phases; on a GPU as Replica::trace.
  void trace(kernels::TraceTrack& track) { trace_ = &track; }

  /// Enqueues a step and waits for it.
  StepResult run(const Input& input, Deadline deadline);

  /// Its device memory.
  static std::size_t memory_bytes(const StepSpec& spec);

  /// Steps that may be enqueued after the oldest one whose result is not taken.
  static constexpr std::int64_t kMostAhead = 31;

  /// Piggybacked scalars in the gradient arena: the loss.
  static constexpr std::size_t kPiggybackedScalars = 1;

 private:
  using StepState = kernels::step_state::StepState;
  using Report = kernels::step_state::Report;
  /// What kernels count.
  struct Counters {
    unsigned arrivals = 0;      // of blocks of a launch
    std::uint32_t reports = 0;  // written
  };
  struct Slot {
    const Report* report = nullptr;  // in reports_
    std::unique_ptr<kernels::Event> done;
    std::int64_t global_samples = 0;
    std::optional<StepPhases> phases{};
  };
  /// Passes of equal shape share a recording. NCCL requires that all ranks record a collective, or none does: ranks whose
  /// counts and divisors differ agree on the size of the step and on the number of the pass.
  struct Shape {
    std::int64_t count = 0;
    std::int64_t divisor = 0;
    std::int64_t global_samples = 0;
    std::int64_t number = 0;  // of the pass in its step
    GradientReducer::Pass pass;
    std::int64_t first = 0;
    std::int64_t stride = 1;
    auto operator<=>(const Shape&) const = default;
  };

  StepState* device_state() const { return state_.as<StepState>(); }
  void enqueue_work(DeviceBatch& batch, const Shape& shape);
  void enqueue_pass(DeviceBatch& batch, const Shape& shape);
  void enqueue_forward(DeviceBatch& batch, const Shape& shape, nn::StepObserver& observer);
  void enqueue_backward(DeviceBatch& batch, const Shape& shape, const nn::Gradients& gradients,
                        nn::StepObserver& observer);
  void enqueue_empty_batch(const Shape& shape);
  void enqueue_update();
  std::unique_ptr<kernels::Recording> record(DeviceBatch& batch, const Shape& shape);
  void enqueue_recorded(DeviceBatch& batch, const Shape& shape);
  void mark_report(std::int64_t global_samples);
  StepResult take_oldest();

  StepSpec spec_;
  StepParts parts_;
  kernels::Buffer correct_;
  kernels::Buffer state_;       // StepState
  kernels::Buffer counters_;    // Counters
  kernels::Buffer host_state_;  // pinned: staging
  kernels::Buffer host_rates_;
  kernels::Buffer rates_;        // learning rates: tables of the groups, one an applied step
  kernels::Buffer group_rates_;  // of this step, one a group
  kernels::Buffer reports_;      // pinned: one Report per slot, written by the device
  std::vector<Slot> slots_;
  std::deque<Slot*> in_flight_;  // oldest first
  std::size_t next_slot_ = 0;    // as many as Counters::reports will be
  kernels::TraceTrack* trace_ = nullptr;
  PhaseClock clock_;
  StepPhases phases_;      // of the current step
  std::int64_t pass_ = 0;  // number of the current one
  std::set<Shape> seen_;   // run once without recording: libraries initialize in a first run
  std::map<Shape, std::unique_ptr<kernels::Recording>> recordings_;
};

}  // namespace gradring::train
