// SPDX-License-Identifier: Apache-2.0
#include "train/config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "train/config/parse_value.h"

namespace gradring::train {
namespace {

std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "\"";
}

/// An option whose value is any text.
Option text(std::string name, std::string value, std::string help, std::string TrainConfig::* field) {
  return {std::move(name), std::move(value), std::move(help),
          [field](TrainConfig& config, std::string_view given) { config.*field = std::string(given); },
          [field](const TrainConfig& config) { return quoted(config.*field); }};
}

/// An option that is one of a few words; --help lists them.
Option word(const std::string& name, std::string help, std::initializer_list<std::string_view> words,
            std::string TrainConfig::* field) {
  return {name, fmt::format("{}", fmt::join(words, "|")), std::move(help),
          [name, list = std::vector<std::string_view>(words), field](TrainConfig& config, std::string_view given) {
            config.*field = parse_word(name, given, list);
          },
          [field](const TrainConfig& config) { return quoted(config.*field); }};
}

Option integer(const std::string& name, std::string help, std::int64_t least, std::int64_t TrainConfig::* field) {
  return {name, "N", std::move(help),
          [name, least, field](TrainConfig& config, std::string_view given) {
            config.*field = parse_integer(name, given, least);
          },
          [field](const TrainConfig& config) { return std::to_string(config.*field); }};
}

/// A number of the optimizer.
Option number(const std::string& name, std::string help, double OptimizerSpec::* field) {
  return {name, "F", std::move(help),
          [name, field](TrainConfig& config, std::string_view given) {
            config.optimizer.*field = parse_number(name, given, 0);
          },
          [field](const TrainConfig& config) { return fmt::format("{}", config.optimizer.*field); }};
}

Option megabytes(const std::string& name, std::string help, std::size_t BucketLimits::* field) {
  return {name, "F", std::move(help),
          [name, field](TrainConfig& config, std::string_view given) {
            config.buckets.*field = parse_megabytes(name, given);
          },
          [field](const TrainConfig& config) { return show_megabytes(config.buckets.*field); }};
}

Option optimizer_name() {
  return {"optimizer", "adam|adamw|sgd", "how gradients become new weights",
          [](TrainConfig& config, std::string_view given) {
            constexpr std::string_view kNames[] = {"adam", "adamw", "sgd"};
            config.optimizer.name = parse_word("optimizer", given, kNames);
          },
          [](const TrainConfig& config) { return quoted(config.optimizer.name); }};
}

Option learning_rate() {
  return {"lr", "F", "learning rate",
          [](TrainConfig& config, std::string_view given) { config.learning_rate = parse_number("lr", given, 0); },
          [](const TrainConfig& config) { return fmt::format("{}", config.learning_rate); }};
}

Option nesterov() {
  return {"nesterov", "", "Nesterov's form of momentum (sgd)",
          [](TrainConfig& config, std::string_view given) { config.optimizer.nesterov = parse_flag("nesterov", given); },
          [](const TrainConfig& config) { return std::string(config.optimizer.nesterov ? "true" : "false"); }};
}

Option seed() {
  return {"seed", "N", "seed of the first weights and of the shuffles",
          [](TrainConfig& config, std::string_view given) { config.seed = parse_seed("seed", given); },
          [](const TrainConfig& config) { return std::to_string(config.seed); }};
}

Option device() {
  return {"device", "auto|cpu|cuda[:i]", "where to compute; auto takes a GPU if there is one",
          [](TrainConfig& config, std::string_view given) {
            if (given != "auto") kernels::DeviceId::parse(given);
            config.device = std::string(given);
          },
          [](const TrainConfig& config) { return quoted(config.device); }};
}

Option timeout() {
  return {"timeout", "T", "how long ranks wait for each other (30s, 500ms, 2m)",
          [](TrainConfig& config, std::string_view given) { config.timeout = parse_duration("timeout", given); },
          [](const TrainConfig& config) { return quoted(show_duration(config.timeout)); }};
}

}  // namespace

const std::vector<Option>& train_options() {
  static const std::vector<Option> options = {
      word("dataset", "what to learn; digits is made on the spot", {"digits", "mnist", "fashion-mnist"},
           &TrainConfig::dataset),
      text("data-dir", "D", "folder of the data set's files", &TrainConfig::data_dir),
      word("model", "what learns", {"convnet"}, &TrainConfig::model),
      integer("epochs", "passes over the training set", 0, &TrainConfig::epochs),
      integer("steps", "stop after so many steps; 0: after the epochs", 0, &TrainConfig::steps),
      integer("batch-size", "samples a step, per rank", 1, &TrainConfig::batch_size),
      seed(),
      optimizer_name(),
      learning_rate(),
      number("momentum", "momentum (sgd)", &OptimizerSpec::momentum),
      number("dampening", "dampening of momentum (sgd)", &OptimizerSpec::dampening),
      nesterov(),
      number("weight-decay", "L2 (adam, sgd) or decoupled decay (adamw, where 0.01 is usual)",
             &OptimizerSpec::weight_decay),
      device(),
      word("backend", "who computes the layers", {"auto", "reference", "cpu"}, &TrainConfig::backend),
      megabytes("bucket-mb", "gradients all-reduced as one, in MiB", &BucketLimits::rest_bytes),
      megabytes("first-bucket-mb", "the same, for the first bucket of a step", &BucketLimits::first_bytes),
      timeout(),
      integer("check-replicas", "compare the ranks' weights every N steps; 0: never", 0, &TrainConfig::check_replicas),
      text("run-dir", "R", "folder for the results; default runs/<dataset>-<model>-<time>", &TrainConfig::run_dir),
      word("progress", "how to show progress", {"auto", "bar", "plain", "none"}, &TrainConfig::progress),
      integer("nprocs", "ranks to spawn from this one process", 1, &TrainConfig::nprocs),
  };
  return options;
}

std::string variable_of(const Option& option) {
  std::string name = "GRADRING_" + option.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

}  // namespace gradring::train
