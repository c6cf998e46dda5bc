// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "kernels/ops/optimizers/optimizers.h"
#include "kernels/ops/step_state/step_state.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "train/options/choice.h"

namespace gradring::train {

/// A 16-bit copy of the weights, which mixed precision computes with. data null: no copy.
struct RoundedCopy {
  kernels::DType dtype = kernels::DType::f32;
  void* data = nullptr;
};

/// A tensor that an optimizer keeps between steps: one float per weight.
struct OptimizerState {
  std::vector<std::string> names;  ///< by parameter group, PyTorch's: exp_avg, momentum_buffer, ...; empty: unused
  float* data = nullptr;
};

/// A contiguous run of weights that an optimizer updates, in device memory.
struct UpdateSlice {
  float* weights = nullptr;
  const float* gradients = nullptr;
  RoundedCopy copy;
  std::size_t state_offset = 0;  ///< of their optimizer state, in elements
  std::size_t elements = 0;
  int group = 0;                  ///< of the parameter groups
  int matrix = -1;                ///< that it is a part of (MuonParts::matrices); -1: none
  std::size_t matrix_offset = 0;  ///< in that matrix, in elements
};

/// The state that --ema keeps: an average of the weights.
inline constexpr std::string_view kEmaState = "ema";

/// Turns gradients into new weights: one kernel launch per slice, but for Muon (muon.h). Owns its state (moments,
/// momentum).
///
/// Order     enqueued on the stream; returns at once.
/// Numerics  deterministic; the bits of a weight do not depend on how weights are divided, so equal gradients keep
///           replicas bit-identical.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// To be called after weights were initialized or loaded.
  virtual void enqueue_begin(kernels::Stream& /*stream*/, std::span<const UpdateSlice> /*slices*/) {}
  /// weights -= update(gradients * state->gradient_scale), and copy = weights, unless state->non_finite. `state` is in
  /// device memory. So are `learning_rates`, one for each parameter group. Then the step ends as `end` says: in the
  /// launch of the last update where that is Adam's or SGD's, else in a launch of its own.
  virtual void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices,
                            const kernels::step_state::StepState* state, const float* learning_rates,
                            const kernels::StepEnd& end = {}) = 0;
  /// All state, in device memory: to be saved or overwritten between steps.
  virtual std::vector<OptimizerState> states() = 0;
  /// Device memory of the state.
  virtual std::size_t bytes() const = 0;
};

enum class OptimizerKind : std::uint8_t { adam, adamw, sgd, sgdw, muon };
template <>
inline constexpr auto kWords<OptimizerKind> = std::to_array<std::string_view>({"adam", "adamw", "sgd", "sgdw", "muon"});
/// Adam or AdamW; the others may have momentum.
constexpr bool is_adam(OptimizerKind kind) { return kind == OptimizerKind::adam || kind == OptimizerKind::adamw; }

/// What keeps Muon's updates in proportion to the weights, for a matrix of [rows, columns]. The first two are the
/// adjust_lr_fn of torch.optim.Muon.
enum class MuonScale : std::uint8_t {
  original,         ///< the rate times sqrt(max(1, rows / columns))
  match_rms_adamw,  ///< the rate times 0.2 sqrt(max(rows, columns)): AdamW's rates fit
  normalize         ///< weights are scaled to the norm sqrt(rows) before the update, instead of a decay
};
template <>
inline constexpr auto kWords<MuonScale> = std::to_array<std::string_view>({"original", "match-rms-adamw", "normalize"});

/// Decays of Adam's moments.
struct Betas {
  double first = 0.9;
  double second = 0.999;
  bool operator==(const Betas&) const = default;
};

/// Options of the parameters whose names match a pattern (--group). Those that are missing are the run's.
struct GroupOverride {
  std::string pattern;
  std::optional<OptimizerKind> kind = {};
  std::optional<double> learning_rate = {};
  std::optional<double> momentum = {};
  std::optional<double> dampening = {};
  std::optional<bool> nesterov = {};
  std::optional<Betas> betas = {};
  std::optional<double> epsilon = {};
  std::optional<double> weight_decay = {};
  std::optional<double> epochs = {};
  std::optional<bool> frozen = {};
  bool operator==(const GroupOverride&) const = default;
};

/// The user's choice of an optimizer. Validation rejects values that the optimizer does not use.
struct OptimizerSpec {
  OptimizerKind kind{};
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  Betas betas;
  double epsilon = 1e-8;
  MuonScale muon_scale{};
  std::int64_t muon_steps = 5;  ///< Newton-Schulz iterations
  double weight_decay = 0;
  bool no_bias_decay = false;              ///< biases do not decay
  double ema = 0;                          ///< decay of an average of the weights; 0: no average
  std::vector<GroupOverride> groups = {};  ///< a later one overrides an earlier one
  bool operator==(const OptimizerSpec&) const = default;
};

/// An entry of PyTorch's param_groups: parameters that are updated alike.
struct ParameterGroup {
  OptimizerSpec options;                     ///< without ema, groups and no_bias_decay
  std::optional<double> learning_rate = {};  ///< peak; missing: the run's
  double epochs = 0;                         ///< trained for the first ones only; 0: for all
  bool frozen = false;                       ///< not trained
  bool operator==(const ParameterGroup&) const = default;
};

/// Weights that Muon updates as a matrix: filters as [out, the rest], in memory order.
struct WeightMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  int bucket = 0;
  std::size_t offset = 0;  ///< in the bucket, in elements
};

/// What Muon needs of other ranks. train/core/ddp implements it.
class WholeBuckets {
 public:
  virtual ~WholeBuckets() = default;
  /// f32 memory of a bucket, until the next one's is asked for. This rank writes what belongs to its shard.
  virtual float* data(int bucket) const = 0;
  /// Gathers the shards of all ranks there. Collective; enqueued on the compute stream.
  virtual void enqueue_gather(int bucket) = 0;
};

/// What Muon updates.
struct MuonParts {
  std::vector<WeightMatrix> matrices;  ///< of all ranks; empty: no group uses Muon
  WholeBuckets* buckets = nullptr;     ///< outlives the optimizer
  MuonScale scale{};
  std::int64_t steps = 5;
};

/// An optimizer of `elements` weights in parameter groups: Adam and SGD (L2 in the gradient), AdamW, SGDW and Muon
/// (decoupled decay), with PyTorch's numbers (SGDW: timm's); with a decay `ema`, an exponential moving average of the
/// weights besides.
///
/// Memory    two floats per weight if a group needs Adam's, else one if a group has momentum; Muon's besides.
///
/// Errors    DeviceError if there is no memory for the state.
/// Source    Kingma, Ba: "Adam", 2015; Loshchilov, Hutter: "Decoupled weight decay regularization", 2019;
///           torch.optim.swa_utils.AveragedModel with an avg_fn.
std::unique_ptr<Optimizer> make_optimizer(std::span<const ParameterGroup> groups, double ema, const MuonParts& muon,
                                          const kernels::KernelSet& kernels, kernels::Device& device,
                                          std::size_t elements);

enum class ScheduleKind : std::uint8_t {
  constant,
  step,
  linear,
  cosine,
  one_cycle,
  exponential
};  ///< the last of a range test
template <>
inline constexpr auto kWords<ScheduleKind> =
    std::to_array<std::string_view>({"constant", "step", "linear", "cosine", "one-cycle", "exponential"});

/// The user's choice of a learning rate schedule.
struct ScheduleSpec {
  ScheduleKind kind{};
  std::int64_t warmup_steps = 0;  ///< linear rise to the peak; one-cycle has its own
  std::int64_t step_size = 0;     ///< step: applied steps between two decays
  double gamma = 0.1;             ///< step: factor of each decay
  double least = 0;               ///< linear, cosine: the rate at the end; exponential: at the start
};

/// Whether a schedule's rates depend on the number of steps in all: a longer training has other rates from its start.
inline bool spans_training(const ScheduleSpec& spec) {
  return spec.kind != ScheduleKind::constant && spec.kind != ScheduleKind::step;
}

/// The learning rate of step `step` of `steps`, counted from 0, skipped steps excluded; w = warmup_steps, t = step - w,
/// T = steps - w:
///   step < w:    peak * (step + 1) / w
///   constant:    peak
///   step:        peak * gamma ^ floor(t / step_size)
///   linear:      peak + (least - peak) * t / T
///   cosine:      least + (peak - least) * (1 + cos(pi t / T)) / 2
///   exponential: least * (peak / least) ^ (t / (T - 1))
///   one-cycle:   cosine from peak / 25 to peak over the first 30 % of the steps, then to peak / 250,000
///
/// Errors    InvalidArgument for a step_size below 1, or w > steps.
/// Source    torch.optim.lr_scheduler: StepLR, LinearLR(start_factor = 1, total_iters = T), CosineAnnealingLR(T_max = T)
///           and OneCycleLR(cycle_momentum = False), in closed form; Loshchilov, Hutter: "SGDR", 2017; Smith, Topin: "Super-convergence", 2018.
/// Example   tests/train/core/optim/schedule_test.cpp
double learning_rate_at(const ScheduleSpec& spec, double peak, std::int64_t steps, std::int64_t step);

/// The learning rates of all steps, as the device reads them (kernels/ops/step_state: past the end the last entry
/// holds); a single entry where the rate is constant.
///
/// Errors    InvalidArgument also for more than 16,777,216 steps.
std::vector<float> learning_rates(const ScheduleSpec& spec, double peak, std::int64_t steps);

/// The steps of a training, and of an epoch.
struct TrainingSteps {
  std::int64_t total = 0;
  std::int64_t of_epoch = 0;
};

/// The steps in which a group is trained: those of its `epochs`, at least one, or all.
std::int64_t steps_of(const ParameterGroup& group, const TrainingSteps& steps);

/// The learning rate of a group in a step. A group with `epochs` has the schedule of a training of that length, and then
/// the rate 0. `peak` is the run's. An exponential schedule keeps the ratio of its rates to the run's.
double learning_rate_at(const ParameterGroup& group, const ScheduleSpec& spec, double peak, const TrainingSteps& steps,
                        std::int64_t step);

/// A table of each group: [groups, count].
std::vector<float> learning_rates(std::span<const ParameterGroup> groups, const ScheduleSpec& spec, double peak,
                                  const TrainingSteps& steps);

}  // namespace gradring::train
