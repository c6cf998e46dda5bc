// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/augment/augmentation.h"
#include "data/datasets/dataset_facts.h"
#include "data/datasets/open_dataset.h"
#include "kernels/runtime/device.h"
#include "nn/models/model.h"
#include "nn/program/activation_memory.h"
#include "train/core/config/choices.h"
#include "train/core/config/normalize_option.h"
#include "train/core/config/simulated_gpu_option.h"
#include "train/core/ddp/buckets.h"
#include "train/core/faults/fault.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train {

enum class ProgressStyle : std::uint8_t;  // records/metrics/progress.h

/// The largest number of threads of a rank; larger values are refused.
constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostLoaderThreads = 64;

/// Steps of a run, counted from 1; both ends belong to it.
struct StepRange {
  std::int64_t first = 10;
  std::int64_t last = 20;
};

/// How much of the training set is held out as the validation set (--val-split): nothing, a fraction, or samples.
struct ValSplit {
  double fraction = 0;       ///< above 0 and below 1, or 0 if `samples` says it
  std::int64_t samples = 0;  ///< 0: none

  explicit operator bool() const { return fraction > 0 || samples > 0; }
  bool operator==(const ValSplit&) const = default;
};

/// All settings of a training run, with the defaults of the command line. config/options.cpp maps each field to an
/// option.
struct TrainConfig {
  std::string preset;  ///< whose options apply where no other source gives them; empty: none
  std::string dataset = "digits";
  std::string data_dir;
  std::optional<data::DatasetFacts>
      facts;                     ///< of `dataset`, as facts_of() found them, or a program has them; no option
  NormalizeOption normalize;     ///< of pixels
  std::int64_t image_size = 64;  ///< height and width of the samples of an image folder
  std::int64_t resize = 0;       ///< its images' shorter side before the middle is cut out; 0: image_size
  data::OnBroken on_broken{};    ///< its images that cannot be read
  ValSplit val_split;            ///< validation samples, held out of the training set
  Stratify stratify{};
  data::Augmentation augment;     ///< of the training set's images
  std::string model = "convnet";  ///< a built-in one, or the path of a model file
  std::string model_text;         ///< of the file, which a run keeps; empty: `model` is built in, or not read yet
  std::int64_t epochs = 2;        ///< 0: until `steps`
  std::int64_t steps = 0;         ///< 0: until the end of `epochs`
  std::int64_t batch_size = 64;   ///< samples per rank and micro-batch
  std::int64_t accumulate = 1;    ///< micro-batches per step
  std::int64_t global_batch = 0;  ///< samples per step over all ranks; 0: batch_size * accumulate * ranks
  Sampler sampler{};
  std::int64_t shard_size = 0;  ///< samples per shard (sharded); 0: batch_size
  GradientMean gradient_mean{};
  std::uint64_t seed = 0;  ///< of the initial weights and of the shuffles

  OptimizerSpec optimizer;
  double learning_rate = 1e-3;  ///< peak
  ScheduleSpec schedule;
  double clip_norm = 0;        ///< largest global L2 norm; 0: no clipping
  double label_smoothing = 0;  ///< of the training loss, below 1
  OnNan on_nan{};

  nn::Checkpointing checkpointing;  ///< which activations are recomputed in backward

  Precision precision{};
  double loss_scale = 65536;                ///< initial, in fp16
  std::int64_t loss_scale_interval = 2000;  ///< steps without overflow before it doubles

  std::string device = "auto";           ///< auto, cpu, cuda, cuda:<index>
  std::string simulate_gpu = kRealGpus;  ///< or the card that is simulated: a name, or a file
  std::uint64_t simulate_seed = 0;       ///< of the order of work on simulated GPUs
  BackendKind backend{};
  std::string conv = "auto";    ///< convolution kernel: auto, or a name that the backend knows
  std::string gemm = "auto";    ///< the same for matrix products
  bool autotune = false;        ///< measure kernels and libraries; a resumed run keeps those of its checkpoint
  bool reproducible = false;    ///< bitwise equal results in every run
  bool sync_batchnorm = false;  ///< batch normalization by the batches of all ranks
  bool cuda_graph = true;       ///< a step on a GPU is one CUDA graph
  Resident resident{};
  std::int64_t threads = 0;  ///< compute threads per rank; 0: OMP_NUM_THREADS, or its share of the usable processors
  std::int64_t loader_threads = 0;  ///< per rank, which prepare batches; 0: 1, or more beside a GPU
  bool pin = false;                 ///< every rank is bound to cores of its own
  std::int64_t zero = 0;            ///< ZeRO stage: see ReplicaSpec
  bool sync_every_pass = false;     ///< reduce-scatter after every micro-batch (ZeRO 2, 3)
  bool overlap = true;              ///< all-reduce overlaps with backward
  TransportKind comm{};
  AllReduce allreduce{};
  Precision wire_dtype = Precision::fp32;  ///< of gradients in transit
  bool allow_shared_gpu = false;           ///< several ranks on one GPU, for tests

  BucketLimits buckets;
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  std::int64_t early_stop = 0;      ///< epochs without a higher validation accuracy that end the training; 0: none
  std::int64_t eval_every = 0;      ///< steps between evaluations, besides those after each epoch; 0: none
  Tta tta{};                        ///< of a further evaluation on the test set at the end
  std::int64_t check_replicas = 0;  ///< steps between comparisons of the ranks' weights; 0: never

  std::int64_t save_every_steps = 0;  ///< between checkpoints, besides those after each epoch; 0: none
  std::int64_t keep_last = 3;         ///< newest checkpoints to keep; 0: all
  std::int64_t keep_best = 1;         ///< checkpoints with the highest accuracy to keep besides
  OnSaveError on_save_error{};
  std::string resume = "none";  ///< none, auto, auto-or-restart, or the path of a checkpoint
  std::string weights;          ///< file with initial weights; empty: drawn from the seed
  std::string reinit;           ///< patterns of the tensors that `weights` do not set, separated by commas
  std::string optimizer_state;  ///< PyTorch's, which belongs to `weights`; empty: a new optimizer

  std::string run_dir;          ///< empty: runs/<name>-<time>, or runs/<dataset>-<model>-<time>
  std::string name;             ///< of the run, for people; empty: none
  std::string tags;             ///< labels of the run, separated by commas
  std::int64_t log_every = 10;  ///< steps between collections of every rank's times
  std::string log;              ///< further forms of the metrics, separated by commas: tensorboard
  ProgressStyle progress{};
  std::string trace;               ///< file for the trace of all ranks; empty: none
  StepRange trace_steps{};         ///< that it records
  std::vector<Fault> faults;       ///< to inject
  std::int64_t nprocs = 1;         ///< ranks to start from this process
  std::int64_t data_parallel = 1;  ///< devices of this process, which split each micro-batch
};

inline bool is_simulated(const std::string& card) { return card != kRealGpus; }
inline bool is_simulated(const TrainConfig& config) { return is_simulated(config.simulate_gpu); }

/// The default of --timeout; a step on a simulated GPU may take minutes.
inline std::chrono::milliseconds default_timeout(const std::string& card) {
  return is_simulated(card) ? std::chrono::hours(1) : TrainConfig().timeout;
}

/// Errors    UsageError if a GPU is to be simulated on another device than cuda; InvalidArgument if its file is wrong.
void check_simulated_gpu(const std::string& card, const std::string& device);

/// "cuda:1", or "cuda:1, simulated h100": nobody may take a result for a GPU's.
std::string shown_device(const std::string& id, const std::string& card);

/// The options that require --dataset folder.
inline constexpr const char* kFolderOptions[] = {"image-size", "resize", "broken"};

/// Errors    UsageError if these do not fit --dataset, or each other.
void check_image_options(const TrainConfig& config);

/// The data set of --dataset.
inline data::DatasetSpec dataset_spec(const TrainConfig& config) {
  return {.name = config.dataset,
          .data_dir = config.data_dir,
          .images = {.size = config.image_size, .resize = config.resize > 0 ? config.resize : config.image_size},
          .on_broken = config.on_broken};
}

/// What is known of it: config.facts, or else what its files say. With the mean and std of --normalize, unless
/// normalizes_by_data().
///
/// Errors    as data::facts_of; UsageError if the samples have another number of channels than --normalize.
data::DatasetFacts facts_of(const TrainConfig& config);

/// Whether mean and std are those of the training set.
inline bool normalizes_by_data(const TrainConfig& config) {
  using Kind = NormalizeOption::Kind;
  return config.normalize.kind == Kind::dataset ||
         (config.normalize.kind == Kind::automatic && data::is_own_data(config.dataset));
}

/// Whether --model names a file.
bool is_model_file(std::string_view model);

/// The model of --model.
inline nn::ModelText model_of(const TrainConfig& config) { return {config.model, config.model_text}; }

/// Whether --resume looks for checkpoints in --run-dir.
inline bool resumes_automatically(const TrainConfig& config) {
  return config.resume == "auto" || config.resume == "auto-or-restart";
}

/// The words that --log takes.
inline constexpr std::string_view kTensorBoard = "tensorboard";

/// Whether --log names `sink`.
bool logs_to(const TrainConfig& config, std::string_view sink);

/// Whether weights and gradients are reported with each evaluation (MetricsSink::parameters).
inline bool shows_parameters(const TrainConfig& config) { return logs_to(config, kTensorBoard); }

/// --threads, but 1 instead of 0 in reproducible runs: sums within a layer may depend on the number of threads, which
/// must not depend on the machine.
inline std::int64_t threads_option(const TrainConfig& config) {
  return config.reproducible && config.threads == 0 ? 1 : config.threads;
}

/// Whether each sample is trained on once per epoch, in whole shards.
inline bool is_sharded(const TrainConfig& config) {
  return config.sampler == Sampler::sharded || (config.sampler != Sampler::distributed && config.reproducible);
}

/// Whether --val-split holds out the same share of every class.
inline bool is_stratified(const TrainConfig& config) {
  return config.stratify == Stratify::on ||
         (config.stratify == Stratify::automatic && data::is_own_data(config.dataset));
}

/// Whether a micro-batch is one of all ranks, whose samples are normalized together: --accumulate says how many of them
/// a step has, also one of --global-batch samples.
inline bool has_joint_micro_batches(const TrainConfig& config) { return config.sync_batchnorm && is_sharded(config); }

/// Checks of several options together: counts that must match, options that the chosen optimizer does not have.
///
/// Errors    UsageError that names the options and what to do.
void validate(const TrainConfig& config);

/// Placeholder of --checkpoint-activations in --help.
inline constexpr std::string_view kCheckpointingValue = "none|auto|N";

/// Reads "none", "auto" or a number of segments into `checkpointing`, whose budget stays.
///
/// Errors    UsageError that says what was expected.
void read_checkpointing(std::string_view option, std::string_view text, nn::Checkpointing& checkpointing);
/// The inverse.
std::string show_checkpointing(const nn::Checkpointing& checkpointing);

/// Megabytes of 2^20 bytes, fractions allowed, as bytes; 0 is no budget.
///
/// Errors    UsageError that says what was expected.
std::size_t parse_budget(std::string_view option, std::string_view text);

/// Reads a fraction below 1 ("0.1", with a point or an exponent) or a number of samples ("5000"; "0": none).
///
/// Errors    UsageError that says what was expected.
ValSplit parse_val_split(std::string_view option, std::string_view text);
/// The inverse.
std::string show_val_split(const ValSplit& split);

/// The samples that are held out of `train_samples`; a fraction is rounded down.
///
/// Errors    UsageError if none or all would be.
std::int64_t validation_samples(const ValSplit& split, std::int64_t train_samples);

}  // namespace gradring::train
