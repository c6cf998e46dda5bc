// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>

#include "kernels/base/nearest_name.h"
#include "nn/models/model.h"
#include "train/core/config/group_option.h"
#include "train/core/config/option_rows.h"
#include "train/options/environment_variable.h"
#include "train/options/path_value.h"

namespace gradring::train {
namespace {

using namespace option_rows;

/// All but that of a range test.
constexpr auto kTrainingSchedules = std::span(kWords<ScheduleKind>).first(5);
constexpr std::int64_t kMostAccumulated = 1 << 20;

/// Reading leaves the budget as it is.
TrainOption checkpoint_activations_option() {
  const std::string name = "checkpoint-activations";
  return {.name = name,
          .value = std::string(kCheckpointingValue),
          .help =
              "activation checkpointing: number of segments whose activations are recomputed in backward; auto: as "
              "many as --activation-budget-mb requires",
          .read = [name](TrainConfig& config,
                         std::string_view given) { read_checkpointing(name, given, config.checkpointing); },
          .show = [](const TrainConfig& config) { return quoted(show_checkpointing(config.checkpointing)); }};
}

/// A built-in model, or a file: a path with a slash or an extension.
TrainOption model_option() {
  const auto read = [](std::string_view name, std::string_view given) {
    const auto names = nn::model_names();
    if (is_model_file(given) || std::ranges::find(names, given) != names.end()) return std::string(given);
    throw bad_value(name, given,
                    fmt::format("must be one of {}, or the path of a model file, NAME.toml.{}", fmt::join(names, ", "),
                                did_you_mean(given, names)));
  };
  return option("model", fmt::format("{}|FILE.toml", fmt::join(nn::model_names(), "|")),
                "model architecture: a built-in one, or a file (docs/models.md)", &TrainConfig::model, read, quoted);
}

TrainOption reinit_option() {
  TrainOption reinit = text_option("reinit", "PATTERN",
                                   "tensors that --weights does not set, such as 'fc.*': they begin as --seed draws "
                                   "them, and may have another shape in the file; may be repeated",
                                   &TrainConfig::reinit);
  reinit.separator = ',';
  return reinit;
}

Options model_options() {
  return {
      resumed(OnResume::must_fit, model_option()),
      text_option("model-text", "TEXT",
                  "text of the file of --model, which a run keeps in config.resolved.toml; empty: the file is read",
                  &TrainConfig::model_text),
      resumed(
          OnResume::checkpoint,
          text_option(
              "weights", "PATH",
              "initial weights, which rank 0 reads for all: a checkpoint, a .safetensors file or a PyTorch state_dict",
              &TrainConfig::weights)),
      resumed(OnResume::checkpoint, reinit_option()),
      resumed(
          OnResume::checkpoint,
          text_option("optimizer-state", "FILE",
                      "state_dict of PyTorch's optimizer, which goes on with --weights (.pt); empty: a new optimizer",
                      &TrainConfig::optimizer_state)),
  };
}

Options activation_options() {
  return {
      checkpoint_activations_option(),
      option("activation-budget-mb", "F",
             "memory limit for activations in MiB with --checkpoint-activations auto; 0: as little as possible",
             in(&TrainConfig::checkpointing, &nn::Checkpointing::budget_bytes), parse_budget, show_megabytes),
  };
}

Options batch_options() {
  return {
      changing(Changes::training,
               integer_option("epochs", "passes over the training set; 0: until --steps, also if only --steps is given",
                              {.least = 0}, &TrainConfig::epochs)),
      changing(Changes::training,
               integer_option("steps", "optimizer steps after which training ends; 0: after --epochs", {.least = 0},
                              &TrainConfig::steps)),
      changing(Changes::training,
               integer_option("early-stop",
                              "epochs without a higher validation accuracy (--val-split) after which training ends; 0: "
                              "none",
                              {.least = 0}, &TrainConfig::early_stop)),
      resumed(OnResume::must_fit_within_epoch,
              integer_option("batch-size", "samples per rank and micro-batch", {.least = 1}, &TrainConfig::batch_size)),
      changing(Changes::rounding,
               integer_option("accumulate", "micro-batches per step, whose gradients are summed before the all-reduce",
                              {.least = 1, .most = kMostAccumulated}, &TrainConfig::accumulate)),
      changing(Changes::rounding,
               resumed(OnResume::must_fit_within_epoch,
                       integer_option(
                           "global-batch",
                           "samples per step over all ranks, in micro-batches of --batch-size; 0: --batch-size times "
                           "--accumulate times ranks",
                           {.least = 0}, &TrainConfig::global_batch))),
      choice_option<GradientMean>(
          "gradient-mean",
          "mean of gradients over the samples of a step, or over the ranks' means as in PyTorch, which differs "
          "where ranks have different numbers of samples",
          &TrainConfig::gradient_mean),
      changing(Changes::training,
               number_option("clip-norm",
                             "largest global L2 norm of the gradients, to which larger ones are scaled; 0: no limit",
                             &TrainConfig::clip_norm)),
      changing(Changes::training,
               number_option("label-smoothing",
                             "share of each label's weight that is spread evenly over all classes in the training "
                             "loss, as in PyTorch, such as 0.1; evaluations keep the labels",
                             &TrainConfig::label_smoothing)),
      changing(
          Changes::training,
          choice_option<OnNan>(
              "on-nan",
              "response to gradients that are not finite; skip: no update in this step; halt: error that names the "
              "origin; rollback: return to the newest checkpoint if a smaller loss scale does not help; auto: "
              "skip in fp16, else halt",
              &TrainConfig::on_nan)),
      changing(
          Changes::training,
          resumed(OnResume::must_fit_within_epoch,
                  seed_option(
                      "seed",
                      "seed of the initial weights and of the shuffles, of which only the lower 32 bits count, as in "
                      "PyTorch",
                      &TrainConfig::seed))),
  };
}

TrainOption group_option() {
  TrainOption group =
      option("group", "PATTERN:KEY=VALUE,...",
             "options of the parameters whose names match a pattern, such as '*.bias:weight_decay=0,lr=0.01' "
             "(docs/parameter_groups.md); may be repeated, later ones override",
             in(&TrainConfig::optimizer, &OptimizerSpec::groups), parse_groups,
             [](const std::vector<GroupOverride>& groups) { return quoted(show_groups(groups)); });
  group.separator = kBetweenGroups;
  return group;
}

Options optimizer_options() {
  return {
      resumed(OnResume::must_fit,
              choice_option<OptimizerKind>("optimizer",
                                           "optimizer; muon: for weights of hidden layers, with sgd for the others",
                                           in(&TrainConfig::optimizer, &OptimizerSpec::kind))),
      number_option("lr", "peak learning rate", &TrainConfig::learning_rate),
      resumed(OnResume::must_fit, number_option("momentum", "momentum (sgd, sgdw, muon)",
                                                in(&TrainConfig::optimizer, &OptimizerSpec::momentum))),
      number_option("dampening", "dampening of the momentum (sgd, sgdw)",
                    in(&TrainConfig::optimizer, &OptimizerSpec::dampening)),
      flag_option("nesterov", "Nesterov momentum (sgd, sgdw, muon)",
                  in(&TrainConfig::optimizer, &OptimizerSpec::nesterov)),
      option("betas", "F,F", "coefficients of the running averages of the gradient and its square (adam, adamw)",
             in(&TrainConfig::optimizer, &OptimizerSpec::betas), parse_betas,
             [](const Betas& betas) { return quoted(show_betas(betas)); }),
      number_option("eps", "term added to the denominator for numerical stability (adam, adamw)",
                    in(&TrainConfig::optimizer, &OptimizerSpec::epsilon)),
      choice_option<MuonScale>("muon-scale",
                               "factor of the learning rate for a matrix, as PyTorch's adjust_lr_fn; normalize: no "
                               "factor, but weights are scaled to the norm sqrt(rows) in each step (muon)",
                               in(&TrainConfig::optimizer, &OptimizerSpec::muon_scale)),
      integer_option("muon-steps", "Newton-Schulz iterations that orthogonalize an update (muon)",
                     {.least = 1, .most = 99}, in(&TrainConfig::optimizer, &OptimizerSpec::muon_steps)),
      number_option(
          "weight-decay",
          "weight decay: L2 penalty (adam, sgd) or decoupled (adamw, sgdw, muon), where 0.01 is usual for adamw",
          in(&TrainConfig::optimizer, &OptimizerSpec::weight_decay)),
      flag_option("no-bias-decay", "exclusion of biases from weight decay",
                  in(&TrainConfig::optimizer, &OptimizerSpec::no_bias_decay)),
      resumed(OnResume::must_fit, group_option()),
      resumed(OnResume::must_fit, number_option("ema",
                                                "decay of an exponential moving average of the weights, evaluated "
                                                "beside them, such as 0.999; 0: no average",
                                                in(&TrainConfig::optimizer, &OptimizerSpec::ema))),
      choice_option<ScheduleKind>("schedule", "learning rate schedule over the steps",
                                  in(&TrainConfig::schedule, &ScheduleSpec::kind), kTrainingSchedules),
      integer_option("warmup-steps", "steps of linear warm-up to --lr", {.least = 0},
                     in(&TrainConfig::schedule, &ScheduleSpec::warmup_steps)),
      integer_option("schedule-step-size", "steps between decays of the learning rate (step)", {.least = 0},
                     in(&TrainConfig::schedule, &ScheduleSpec::step_size)),
      number_option("schedule-gamma", "factor of each decay (step)", in(&TrainConfig::schedule, &ScheduleSpec::gamma)),
      number_option("min-lr", "final learning rate (linear, cosine)", in(&TrainConfig::schedule, &ScheduleSpec::least)),
  };
}

Options precision_options() {
  return {
      changing(Changes::rounding,
               choice_option<Precision>(
                   "precision", "compute type of the layers; master weights stay fp32; auto: fp16 on a GPU, else fp32",
                   &TrainConfig::precision)),
      changing(Changes::training, resumed(OnResume::checkpoint,
                                          number_option("loss-scale", "initial loss scale (fp16), halved on overflow",
                                                        &TrainConfig::loss_scale, std::numeric_limits<float>::min()))),
      changing(Changes::training,
               integer_option("loss-scale-interval", "steps without overflow before the loss scale doubles (fp16)",
                              {.least = 1}, &TrainConfig::loss_scale_interval)),
      changing(
          Changes::training,
          flag_option("reproducible",
                      "bitwise equal results in every run at one CPU level, for any number of ranks with the same "
                      "--global-batch and "
                      "--shard-size; with batch normalization it requires --sync-batchnorm and the same --accumulate",
                      &TrainConfig::reproducible)),
  };
}

Options all_options() {
  Options all;
  const auto add = [&all](const char* group, Options options) {
    for (TrainOption& option : options) option.group = group;
    std::ranges::move(options, std::back_inserter(all));
  };
  add("Data", data_options());
  add("Model", changing(Changes::training, model_options()));
  add("Model", activation_options());
  add("Optimization", batch_options());
  add("Optimization", changing(Changes::training, optimizer_options()));
  add("Precision", precision_options());
  add("Parallelism", parallelism_options());
  add("Communication", communication_options());
  add("Checkpoints", checkpoint_options());
  add("Output", output_options());
  add("Devices", device_options());
  return all;
}

}  // namespace

const std::vector<TrainOption>& train_options() {
  static const Options options = all_options();
  return options;
}

const TrainOption* find_option(std::string_view name) {
  const auto& options = train_options();
  const auto found = std::ranges::find(options, name, &TrainOption::name);
  return found == options.end() ? nullptr : &*found;
}

std::string shown_value(const TrainOption& option, const TrainConfig& config) {
  const std::string literal = option.show(config);
  return literal.starts_with('"') ? literal.substr(1, literal.size() - 2) : literal;
}

std::string shown_default(const TrainOption& option) {
  const std::string value = shown_value(option, TrainConfig());
  return value.empty() || option.is_flag() ? "" : " (default " + value + ")";
}

std::vector<Option> dataset_options(TrainConfig& config) {
  config.data_dir = expand_home("GRADRING_DATA_DIR", system_variable("GRADRING_DATA_DIR").value_or(""));
  std::vector<Option> options;
  for (const char* name : {"dataset", "data-dir", "image-size", "resize", "broken"}) {
    const TrainOption& row = *find_option(name);
    options.push_back({.name = row.name,
                       .value = row.value,
                       .help = row.help + shown_default(row),
                       .read = [&config, &row](std::string_view text) { row.read(config, text); }});
  }
  return options;
}

std::string nearest_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TrainOption& option : train_options()) names.push_back(option.name);
  return did_you_mean(name, names);
}

std::string variable_of(const TrainOption& option) {
  std::string name = "GRADRING_" + option.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return name;
}

std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\t') {
      literal += c == '\n' ? "\\n" : "\\t";
      continue;
    }
    if (code < 0x20 || code == 0x7f) {
      literal += fmt::format("\\u{:04x}", code);
      continue;
    }
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "\"";
}

}  // namespace gradring::train
