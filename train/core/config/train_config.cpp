// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "comm/process_group.h"
#include "data/datasets/open_folder.h"
#include "kernels/simulated_gpu/cards/card.h"
#include "train/core/config/train_config.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {

namespace {

constexpr std::size_t kLongestName = 100;  // with a time behind it, a folder

bool is_utf8(const std::string& text) try {
  static_cast<void>(nlohmann::json(text).dump());
  return true;
} catch (const nlohmann::json::type_error&) {
  return false;
}

/// One process updates the weights: what shards state over ranks, or sums over them, does not apply.
void validate_data_parallel(const TrainConfig& config) {
  if (config.data_parallel == 1) return;
  const auto require = [&config](bool condition, const std::string& found, const char* why) {
    if (!condition)
      throw UsageError(fmt::format("--data-parallel {} and {} exclude each other: {}; leave one out",
                                   config.data_parallel, found, why));
  };
  require(config.nprocs == 1, fmt::format("--nprocs {}", config.nprocs),
          "the first trains on several devices from one process, the second starts a process for each");
  require(config.zero == 0, fmt::format("--zero {}", config.zero),
          "the first keeps all optimizer state on the first device, the second shards it over ranks");
  require(config.wire_dtype == Precision::fp32, fmt::format("--wire-dtype {}", word_of(config.wire_dtype)),
          "gradients are gathered from the devices in fp32");
  require(!config.reproducible, "--reproducible", "sums would depend on the number of devices");
  require(!config.sync_batchnorm, "--sync-batchnorm", "the first normalizes the batch of each device by itself");
  require(!config.device.starts_with("cuda:"), "--device " + config.device,
          "the devices are cuda:0 and those after it");
  if (config.batch_size < config.data_parallel)
    throw UsageError(
        fmt::format("--batch-size is {}, but --data-parallel {} splits it over {} devices: raise it to at least {}",
                    config.batch_size, config.data_parallel, config.data_parallel, config.data_parallel));
}

}  // namespace

void check_simulated_gpu(const std::string& card, const std::string& device) {
  if (is_simulated(card) && !device.starts_with("cuda"))
    throw UsageError(fmt::format("--simulate-gpu {} requires --device cuda, found {}", card, device));
  if (is_simulated(card)) simulated_gpu::card_of(card);
}

std::string shown_device(const std::string& id, const std::string& card) {
  return is_simulated(card) ? fmt::format("{}, simulated {}", id, card) : id;
}

data::DatasetFacts facts_of(const TrainConfig& config) {
  data::DatasetFacts facts = config.facts ? *config.facts : data::facts_of(dataset_spec(config));
  set_normalization(facts, config.normalize);
  return facts;
}

bool is_model_file(std::string_view model) { return model.find_first_of("./") != std::string_view::npos; }

bool logs_to(const TrainConfig& config, std::string_view sink) {
  return std::ranges::count(comma_separated(config.log), sink) > 0;
}

void check_image_options(const TrainConfig& config) {
  const data::ImageSettings default_images;
  if (config.dataset != data::kFolder &&
      (config.image_size != default_images.size || config.resize != 0 || config.on_broken != OnBroken::fail))
    throw UsageError(
        fmt::format("--image-size, --resize and --broken require --dataset folder, found {}", config.dataset));
  if (config.resize != 0 && config.resize < config.image_size)
    throw UsageError(
        fmt::format("--resize {} is less than --image-size {}, which is cut out of it: raise it, or leave it out",
                    config.resize, config.image_size));
}

void validate(const TrainConfig& config) {
  const OptimizerSpec& optimizer = config.optimizer;
  const auto require = [](bool condition, const std::string& message) {
    if (!condition) throw UsageError(message);
  };
  require(config.epochs > 0 || config.steps > 0, "nothing to do: --epochs or --steps must be positive");
  require(config.dataset == "digits" || !config.data_dir.empty() || config.facts,
          data::needs_folder_message(config.dataset));
  check_image_options(config);
  require(config.global_batch == 0 || config.accumulate == 1 || has_joint_micro_batches(config),
          fmt::format("--global-batch {} and --accumulate {} both set the samples per step: leave one out, or set "
                      "--accumulate 1{}",
                      config.global_batch, config.accumulate,
                      config.sync_batchnorm ? "; with --sampler sharded, --accumulate divides the global batch" : ""));
  const bool sharded = is_sharded(config);
  require(sharded || config.shard_size == 0,
          fmt::format("--shard-size {} has no effect without --sampler sharded, which --reproducible implies: add "
                      "--sampler sharded, or leave --shard-size out, or set --shard-size 0",
                      config.shard_size));
  require(sharded || !config.reproducible,
          "--sampler distributed depends on the number of ranks, which --reproducible forbids: leave it out");
  require(!config.reproducible || config.gradient_mean == GradientMean::samples,
          "--gradient-mean ranks depends on the number of ranks, which --reproducible forbids: leave it out");
  require(!config.reproducible || config.wire_dtype == Precision::fp32,
          "--reproducible sums gradients as integers: leave out --wire-dtype");
  require(config.allreduce != AllReduce::direct ||
              (config.comm != TransportKind::tcp && config.comm != TransportKind::nccl),
          fmt::format("--allreduce direct requires shared memory: leave out --comm {}", word_of(config.comm)));
  require(config.zero == 0 || config.allreduce == AllReduce::automatic || config.allreduce == AllReduce::ring,
          fmt::format("--zero uses the ring's reduce-scatter: leave out --allreduce {}", word_of(config.allreduce)));
  require(config.zero >= 2 || !config.sync_every_pass,
          "--sync-every-pass has no effect with --zero 0 or 1, which keep all gradients: leave it out, or use --zero 2 "
          "or 3");
  require(!is_adam(optimizer.kind) || (optimizer.momentum == 0 && optimizer.dampening == 0 && !optimizer.nesterov),
          fmt::format("--momentum, --dampening and --nesterov require --optimizer sgd, sgdw or muon, found {}",
                      word_of(optimizer.kind)));
  const OptimizerSpec defaults;
  require(is_adam(optimizer.kind) || (optimizer.betas == defaults.betas && optimizer.epsilon == defaults.epsilon),
          fmt::format("--betas and --eps require --optimizer adam or adamw, found {}", word_of(optimizer.kind)));
  const bool uses_muon =
      optimizer.kind == OptimizerKind::muon || std::ranges::any_of(optimizer.groups, [](const GroupOverride& group) {
        return group.kind == OptimizerKind::muon;
      });
  require(uses_muon || (optimizer.muon_scale == defaults.muon_scale && optimizer.muon_steps == defaults.muon_steps),
          "--muon-scale and --muon-steps require --optimizer muon, or a --group with optimizer=muon");
  require(!optimizer.nesterov || (optimizer.momentum > 0 && optimizer.dampening == 0),
          "--nesterov needs a --momentum above 0 and no --dampening");
  require(!optimizer.no_bias_decay || optimizer.weight_decay > 0,
          "--no-bias-decay has no effect without --weight-decay: add it, or leave out --no-bias-decay");
  require(config.label_smoothing < 1, "--label-smoothing must be below 1, such as 0.1");
  require(optimizer.ema < 1, "--ema is a decay and must be below 1, such as 0.999");
  require(!resumes_automatically(config) || !config.run_dir.empty(),
          "--resume " + config.resume + " looks for checkpoints in --run-dir, which is missing: give it");
  require(!config.resume.empty(),
          "--resume is empty, but must be auto, auto-or-restart, none, or the path of a checkpoint");
  // Checkpoints and config.resolved.toml hold these options, as JSON and as TOML.
  require(is_utf8(config.name) && is_utf8(config.tags), "--name and --tags must be UTF-8");
  require(
      config.name.size() <= kLongestName && config.name.find('/') == std::string::npos && !config.name.starts_with('.'),
      fmt::format("--name must have at most {} bytes, must not begin with '.', and must not contain '/'",
                  kLongestName));
  require(is_utf8(config.data_dir), "--data-dir is not UTF-8: rename the folder, or use a link to it");
  require(is_utf8(config.resume), "--resume is not UTF-8: rename the folder, or use a link to it");
  require(is_utf8(config.trace), "--trace is not UTF-8: choose another name");
  require(is_utf8(config.model), "--model is not UTF-8: rename the file, or make a link to it");
  require(is_utf8(config.weights), "--weights is not UTF-8: rename the file, or make a link to it");
  require(is_utf8(config.optimizer_state), "--optimizer-state is not UTF-8: rename the file, or make a link to it");
  require(config.reinit.empty() || !config.weights.empty(),
          "--reinit requires --weights, which all other tensors come from: add them");
  require(config.reinit.empty() || config.optimizer_state.empty(),
          "--reinit does not go with --optimizer-state, which belongs to all weights: leave one of them out");
  require(config.optimizer_state.empty() || !config.weights.empty(),
          "--optimizer-state requires the --weights that it belongs to: add them");
  require(config.optimizer_state.empty() ||
              (config.schedule.kind == ScheduleKind::constant && config.schedule.warmup_steps == 0),
          "--optimizer-state counts its steps from another training, which --schedule and --warmup-steps do not know: "
          "leave them out");
  require(config.optimizer_state.empty() ||
              std::ranges::none_of(config.optimizer.groups, [](const GroupOverride& group) { return !!group.epochs; }),
          "--optimizer-state goes on with the step count of another training, but epochs in --group count from step 0: "
          "leave one of them out");
  require(config.early_stop == 0 || config.val_split,
          "--early-stop requires a validation set, since the test set must select nothing: add --val-split 0.1");
  require(config.checkpointing.budget_bytes == 0 || config.checkpointing.kind == nn::Checkpointing::Kind::automatic,
          "--activation-budget-mb requires --checkpoint-activations auto");
  validate_data_parallel(config);
  check_simulated_gpu(config.simulate_gpu, config.device);
  const ScheduleSpec& schedule = config.schedule;
  require((schedule.kind == ScheduleKind::step) == (schedule.step_size > 0),
          "--schedule step and --schedule-step-size require each other: give both or neither");
  require(schedule.kind == ScheduleKind::step || schedule.gamma == ScheduleSpec().gamma,
          "--schedule-gamma requires --schedule step");
  require(schedule.kind == ScheduleKind::linear || schedule.kind == ScheduleKind::cosine || schedule.least == 0,
          "--min-lr requires --schedule linear or cosine");
  require(schedule.least <= config.learning_rate, "--min-lr is above --lr: lower it");
  for (const GroupOverride& group : optimizer.groups)
    require(schedule.least <= group.learning_rate.value_or(config.learning_rate),
            fmt::format("--min-lr is above the lr of --group '{}': lower it", group.pattern));
  require(schedule.kind != ScheduleKind::one_cycle || schedule.warmup_steps == 0,
          "--schedule one-cycle includes a warm-up: leave out --warmup-steps");
}

void read_checkpointing(std::string_view option, std::string_view text, nn::Checkpointing& checkpointing) {
  using enum nn::Checkpointing::Kind;
  constexpr std::int64_t kMostSegments = 1'000'000;
  checkpointing.segments = 0;
  if (!text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); })) {
    checkpointing.segments = parse_integer(option, text, {.least = 1, .most = kMostSegments});
    checkpointing.kind = segments;
    return;
  }
  if (text != "none" && text != "auto")
    throw UsageError(fmt::format("--{} is '{}', but must be none, auto or a number of segments", option, text));
  checkpointing.kind = text == "none" ? none : automatic;
}

std::string show_checkpointing(const nn::Checkpointing& checkpointing) {
  using enum nn::Checkpointing::Kind;
  if (checkpointing.kind == segments) return std::to_string(checkpointing.segments);
  return checkpointing.kind == none ? "none" : "auto";
}

std::size_t parse_budget(std::string_view option, std::string_view text) {
  return parse_number(option, text, 0) == 0 ? 0 : parse_megabytes(option, text);
}

ValSplit parse_val_split(std::string_view option, std::string_view text) {
  if (text.find_first_of(".eE") == std::string_view::npos)
    return {.samples = parse_integer(option, text, {.least = 0})};
  const double fraction = parse_number(option, text, 0);
  if (fraction >= 1)
    throw UsageError(fmt::format(
        "--{} is {}, but must be a fraction below 1, such as 0.1, or a whole number of samples, such as 5000", option,
        text));
  return {.fraction = fraction};
}

std::string show_val_split(const ValSplit& split) {
  return split.fraction > 0 ? fmt::format("{}", split.fraction) : std::to_string(split.samples);
}

std::int64_t validation_samples(const ValSplit& split, std::int64_t train_samples) {
  if (!split) return 0;
  const std::int64_t held_out =
      split.fraction > 0 ? static_cast<std::int64_t>(std::floor(static_cast<double>(train_samples) * split.fraction))
                         : split.samples;
  if (held_out > 0 && held_out < train_samples) return held_out;
  throw UsageError(
      fmt::format("--val-split {} holds out {} of {} training samples, but must leave at least one on each "
                  "side: give a number from 1 to {}",
                  show_val_split(split), held_out, train_samples, train_samples - 1));
}

}  // namespace gradring::train
