// SPDX-License-Identifier: Apache-2.0
// The state of a training between two steps, as a checkpoint holds it, and whether a checkpoint fits this run.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/dataset_facts.h"
#include "data/loader/sampler.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/shape.h"
#include "nn/program/program.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/trainer_world.h"
#include "train/core/trainer/training_progress.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// The key of Checkpoint::about for the shape of a sample: [height, width, channels].
inline constexpr const char* kSampleShape = "sample_shape";

/// The shape as a checkpoint holds it.
nlohmann::ordered_json to_json(const kernels::Shape& shape);

/// Compares the samples that a model was trained on with those of this run. The shapes of its parameters do not tell:
/// pooling makes samples of several sizes equal.
///
/// Errors    CheckpointError with `from` if both are known and differ.
void check_sample_shape(const nlohmann::ordered_json& about, const kernels::Shape& here,
                        const std::filesystem::path& from);

/// What determines the order of samples, and which are held out for validation, as a checkpoint holds it.
JsonValue order_of_samples(const TrainerWorld& world, const TrainConfig& config);

/// The validation set of a training: so many samples of its training set, which the seed selects (data::random_split,
/// data::stratified_split).
struct HeldOut {
  std::string dataset;
  std::int64_t samples = 0;
  std::int64_t train_samples = 0;  ///< that are left to train on
  std::uint64_t seed = 0;
  bool stratified = false;
  std::string sha256 = {};  ///< of kTrainingData; empty: unknown
};

/// The validation set that a checkpoint records; nothing if the training had none.
///
/// Errors    CheckpointError with `from` if a value is missing or invalid.
std::optional<HeldOut> held_out_samples(const Checkpoint& checkpoint, const std::filesystem::path& from);

/// Checks that a training resumes with the validation set that it had: other samples of the data set were trained on.
/// `saved` and `here` are order_of_samples().
///
/// Errors    UsageError: what differs, and what to do.
void check_split(const JsonValue& saved, const JsonValue& here, const std::filesystem::path& from);

/// The position of a checkpoint, and the order of samples in this run.
struct OrderCheck {
  const TrainingProgress& progress;
  const JsonValue& saved;
  const JsonValue& here;
  const data::StepSampler& sampler;
  std::int64_t samples_of_step = 0;
  const std::filesystem::path& from;
  const DataHashes& saved_data;
  const DataHashes& data;

  /// Whether the training goes on only with the samples that it had: it is within an epoch, or has held some out.
  bool needs_same_samples() const;
};

/// Checks that a training resumes with the samples that it had, where both are known and it needs_same_samples().
///
/// Returns   a remark if they differ otherwise; else empty.
/// Errors    CheckpointError that says what differs, and what to do.
std::string check_samples(const OrderCheck& check);

/// Checks that an epoch can continue with the samples that were not seen yet.
///
/// Errors    UsageError: what differs, and what to do.
void check_order(const OrderCheck& check);

/// The key of Checkpoint::about for recorded_cpu_level.
inline constexpr const char* kCpuLevel = "cpu_level";

/// What determines a CPU's rounding: the level of the instruction set ("x86-64-v3"; levels from v3 on have fused
/// multiply-adds), and oneDNN's limit where the user set one ("x86-64-v3, ONEDNN_MAX_CPU_ISA=SSE41"). Empty for a GPU.
std::string recorded_cpu_level(const kernels::Device& device);

/// How to select level `wanted` on a machine that uses `here`: "set GRADRING_CPU_LEVEL=x86-64-v2" where this build has
/// that level, "unset ..." where only oneDNN's limit differs.
std::string advice_for_cpu_level(const std::string& wanted, const std::string& here);

/// Compares the level that a checkpoint was saved with to that of this run.
///
/// Returns   if both are known and differ, a remark: how to select the checkpoint's level; else empty.
/// Errors    UsageError with that, of a reproducible run.
std::string check_cpu_level(const nlohmann::ordered_json& about, const kernels::Device& device, bool reproducible,
                            const std::filesystem::path& from);

/// What a replica carries from one step to the next, in host memory, with PyTorch's names and orders, and independent
/// of the number of ranks.
struct ReplicaState {
  std::vector<TensorRecord> model;  ///< the weights, in f32
  std::vector<TensorRecord> state;  ///< the optimizer's: "exp_avg.conv_layers.0.weight", ...
  kernels::step_state::StepState step;
};

/// A training between two steps: the contents of a checkpoint.
struct TrainingState {
  TrainingProgress progress;
  ReplicaState replica;
  std::int64_t samples_of_step = 0;  ///< over all ranks
  JsonValue computation = {};        ///< of a reproducible training: computation_of()
  kernels::Shape sample = {};        ///< of one sample
  JsonValue order;                   ///< order_of_samples(): an epoch can continue only in the same order
  std::string cpu_level = {};        ///< recorded_cpu_level() of the device
  JsonValue plans = {};              ///< plans_of(): what --autotune keeps
  std::string device = {};           ///< its description
  std::int64_t total_steps = 0;      ///< that were planned, which a schedule spans
  std::string precision = {};        ///< of the layers, which decides whether the loss is scaled; empty: unknown
  std::optional<data::DatasetFacts> dataset = {};  ///< of the training set
  DataHashes data = {};                            ///< empty: unknown
};

/// Keys of Checkpoint::about.
inline constexpr const char* kProgress = "progress";  ///< a checkpoint of a training has it
inline constexpr const char* kSamplesOfStep = "samples_of_step";
inline constexpr const char* kPlans = "plans";
inline constexpr const char* kDevice = "device";
inline constexpr const char* kTotalSteps = "total_steps";

/// The implementation of each layer of a program: [{"layers": ["fc_layers.0"], "by": "gemm/direct"}, ...], the loss
/// last.
JsonValue plans_of(const nn::Program& program);

/// What computed each layer, by its name, in a training that saved `about`; empty where that is unknown.
std::map<std::string, std::string> plans_by_layer(const nlohmann::ordered_json& about);

/// `settings` are the run's options as TOML, informative only; `score` ranks checkpoints.
Checkpoint to_checkpoint(TrainingState state, const std::string& settings, std::optional<double> score);

/// The inverse; the tensors are as in the file.
///
/// Errors    CheckpointError with the file and the value if one is missing or invalid, or contradicts others
///           (check_consistent).
TrainingState from_checkpoint(Checkpoint checkpoint, const std::filesystem::path& from);

/// Hands checkpoints to rank 0's sink, which writes them in the background. Where ranks must wait for the writing, they
/// synchronize repeatedly: the timeout of collectives is meant for silent ranks, not for slow disks.
///
/// Threads   the trainer's. The world must outlive it.
class CheckpointSaver {
 public:
  /// stop_on_errors: two consecutive checkpoints that could not be saved end the run.
  CheckpointSaver(const TrainerWorld& world, std::chrono::milliseconds timeout, bool stop_on_errors)
      : world_(world), patience_(timeout / 4), stop_on_errors_(stop_on_errors) {}

  /// Collective. Returns when rank 0 is not writing.
  void wait();
  /// Reports errors of writing, on rank 0.
  ///
  /// Errors    SaveError.
  void report();
  /// Collective. Returns when the last checkpoint is durable.
  ///
  /// Errors    SaveError, on rank 0.
  void finish();

 private:
  const TrainerWorld& world_;
  std::chrono::milliseconds patience_;
  bool stop_on_errors_;
};

}  // namespace gradring::train
