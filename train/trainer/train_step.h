// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/feed/batch_source.h"
#include "train/optim/optimizer.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/gradient_path.h"
#include "train/parallel/gradient_search.h"
#include "train/precision/compute_weights.h"
#include "train/precision/loss_scaling.h"

namespace gradring::train {

/// What a step works with; lives longer than the step.
struct StepParts {
  kernels::Device& device;
  kernels::Stream& stream;
  const kernels::KernelSet& kernels;
  nn::Program& program;
  ComputeWeights& weights;
  DistributedDataParallel& ddp;
  GradientPath& path;     ///< of the gradients, through ddp
  const float* loss_sum;  ///< the one rider, where the path leaves its sum
  GradientSearch& search;
  Optimizer& optimizer;
  std::vector<UpdateSlice> slices;  ///< that it updates
  LossScaling loss_scaling;
  std::vector<float> learning_rates;  ///< of applied steps; the last one goes on
  double clip_norm = 0;               ///< of all gradients together; 0: they are not clipped
  bool searches = false;  ///< gradients that are not finite are searched for, even if nothing else needs that
  bool recorded = false;  ///< passes of one shape are recorded once and then launched as one (a CUDA graph)
};

/// What came of a step.
struct StepResult {
  double loss = 0;                 ///< mean over the global batch, before the update; the same bits on every rank
  float loss_scale = 1;            ///< that the step was made with
  float gradient_norm = 0;         ///< of the mean gradient, before clipping; 0 where nothing is clipped
  float learning_rate = 0;         ///< that the device read from the table
  std::int64_t applied_steps = 0;  ///< before it, without those that were skipped
  bool skipped = false;            ///< a gradient was not finite, so no weight was changed
  int non_finite = -1;             ///< the parameter whose gradient was the first, as backward goes; -1: not known
  double underflow = 0;            ///< share of gradients that are too small for f16 (GradientSearch); 0: not searched
};

/// One optimizer step: bring the batch to the device, forward, loss, backward with all-reduce, update. The rest of the
/// trainer only decides which batches come, and what to report. A step may be made of a window of several batches, whose
/// gradients are accumulated: the last one does what follows backward.
///
/// The host need not wait for a step before it enqueues the next: results are kept until somebody asks, as many as there is
/// room for. With loss scaling or clipping, or if that is asked for, the sums of the gradients are searched for what is not
/// finite before the update: the device itself decides whether to skip it, and every rank decides alike, for the sums have the
/// same bits everywhere.
class TrainStep {
 public:
  explicit TrainStep(const StepParts& parts);

  struct Input {
    BatchSource& source;              ///< one and the same for all steps
    std::int64_t count = 0;           ///< samples of its next batch; 0: this rank has none in this step
    std::int64_t global_samples = 0;  ///< in all batches of this step, of all ranks
    std::int64_t divisor = 0;         ///< of this rank's sum of gradients; 0: global_samples
    GradientPath::Pass pass = {};
  };
  /// Enqueues a step, or a batch of its window, and returns.
  ///
  /// Errors    InvalidArgument if full(); comm::CommError, DeviceError, also of steps before it.
  void enqueue(const Input& input);
  /// Whether there is no room for one more result: one must be taken first.
  bool full() const;
  /// The result of the oldest step whose result was not taken yet, if it is done; never blocks.
  std::optional<StepResult> poll();
  /// The same; blocks until it is done. There must be one.
  StepResult wait(Deadline deadline);
  /// Whether a skipped step is followed by one with a smaller loss scale.
  bool scales_loss() const { return parts_.loss_scaling.dynamic; }
  /// Whether results were not taken yet.
  bool idle() const { return in_flight_.empty(); }

  /// What the device carries from step to step: counts of steps, and the loss scale. All results must have been taken.
  ///
  /// Errors    InvalidArgument unless idle().
  kernels::step_state::StepState state(Deadline deadline);
  /// Goes on as if the steps that led to `state` had been made here.
  void set_state(const kernels::step_state::StepState& state, Deadline deadline);

  /// Enqueues a step and waits for it.
  StepResult run(const Input& input, Deadline deadline);

  /// What it allocates on the device, for so many learning rates.
  static std::size_t memory_bytes(std::size_t learning_rates);

  /// How many steps may be enqueued behind the oldest one whose result is not taken.
  static constexpr std::int64_t kMostAhead = 31;

  /// Riders that the gradient arena must have: the sum of the losses.
  static constexpr std::size_t kRiders = 1;

 private:
  using StepState = kernels::step_state::StepState;
  /// What a step leaves behind, in device memory until the next one, and in pinned memory until it is taken.
  struct Report {
    StepState state;
    float loss_sum = 0;
  };
  struct Slot {
    Report* report = nullptr;  // in host_reports_
    std::unique_ptr<kernels::Event> done;
    std::int64_t global_samples = 0;
  };
  /// What is the same in all passes of a recording.
  struct Shape {
    std::int64_t count = 0;
    std::int64_t divisor = 0;
    GradientPath::Pass pass;
    auto operator<=>(const Shape&) const = default;
  };

  bool searches() const { return parts_.searches || parts_.loss_scaling.dynamic || clips(); }
  bool clips() const { return parts_.clip_norm > 0; }
  StepState* device_state() const { return state_.as<StepState>(); }
  void enqueue_work(BatchSource& source, const Shape& shape);
  void enqueue_pass(BatchSource& source, const Shape& shape);
  void enqueue_nothing(const Shape& shape);
  void enqueue_update();
  void enqueue_recorded(BatchSource& source, const Shape& shape);
  void enqueue_report(std::int64_t global_samples);
  StepResult take_oldest();

  StepParts parts_;
  kernels::step_state::Variant counter_;
  kernels::Buffer correct_;
  kernels::Buffer state_;       // StepState
  kernels::Buffer report_;      // Report, of the newest step
  kernels::Buffer host_state_;  // pinned: on its way to the device or back
  kernels::Buffer host_rates_;
  kernels::Buffer rates_;         // learning rates, one an applied step
  kernels::Buffer host_reports_;  // pinned: one Report a slot
  std::vector<Slot> slots_;
  std::deque<Slot*> in_flight_;  // the oldest first
  std::size_t next_slot_ = 0;
  std::set<Shape> seen_;  // that were run once: libraries set themselves up in a first run
  std::map<Shape, std::unique_ptr<kernels::Recording>> recordings_;
};

}  // namespace gradring::train
