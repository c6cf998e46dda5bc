// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "data/datasets/known_datasets.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/every_option.h"
#include "train/core/config/resolve.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using Kind = nn::Checkpointing::Kind;
using testing::HasSubstr;

/// A config in which no option has its default.
OptionTexts everything_else() {
  return {{"preset", "cifar10-94"},
          {"dataset", "folder"},
          {"data-dir", "a \"b\"\\c\n\x7f\u00e9"},
          {"normalize", "0.1:0.125"},
          {"image-size", "32"},
          {"resize", "72"},
          {"broken", "skip"},
          {"val-split", "0.25"},
          {"stratify", "on"},
          {"augment", "crop=2,flip=alternating,cutout=8"},
          {"model", "net.toml"},
          {"model-text", "layers = [{ flatten = 'f' },\n\t{ linear = \"fc\", out = \"classes\" }]"},
          {"epochs", "3"},
          {"steps", "4"},
          {"early-stop", "2"},
          {"batch-size", "5"},
          {"accumulate", "9"},
          {"global-batch", "0"},
          {"sampler", "sharded"},
          {"shard-size", "6"},
          {"gradient-mean", "ranks"},
          {"seed", "18446744073709551615"},
          {"optimizer", "sgd"},
          {"lr", "1e-05"},
          {"momentum", "0.1"},
          {"dampening", "0"},
          {"nesterov", "true"},
          {"betas", "0.9,0.999"},
          {"eps", "1e-08"},
          {"muon-scale", "original"},
          {"muon-steps", "5"},
          {"weight-decay", "3e22"},
          {"no-bias-decay", "true"},
          {"group", "fc.weight:optimizer=adam,betas=0.8,0.99,weight_decay=0.1;*.bias:lr=0.5,nesterov=false,epochs=0.5"},
          {"ema", "0.75"},
          {"schedule", "step"},
          {"warmup-steps", "4"},
          {"schedule-step-size", "3"},
          {"schedule-gamma", "0.2"},
          {"min-lr", "0"},
          {"clip-norm", "0.7"},
          {"label-smoothing", "0.1"},
          {"on-nan", "rollback"},
          {"checkpoint-activations", "auto"},
          {"activation-budget-mb", "1.5"},
          {"precision", "bf16"},
          {"loss-scale", "1024"},
          {"loss-scale-interval", "7"},
          {"cuda-graph", "off"},
          {"resident", "on"},
          {"allreduce", "ring"},
          {"wire-dtype", "bf16"},
          {"allow-shared-gpu", "true"},
          {"device", "cuda:3"},
          {"simulate-gpu", "a100"},
          {"simulate-seed", "18446744073709551614"},
          {"backend", "reference"},
          {"conv", "direct"},
          {"gemm", "strips"},
          {"autotune", "true"},
          {"reproducible", "false"},
          {"threads", "3"},
          {"loader-threads", "2"},
          {"pin", "true"},
          {"data-parallel", "1"},
          {"zero", "3"},
          {"sync-every-pass", "true"},
          {"comm", "tcp"},
          {"overlap", "off"},
          {"sync-batchnorm", "true"},
          {"bucket-mb", "0.3"},
          {"first-bucket-mb", "7"},
          {"timeout", "1500ms"},
          {"check-replicas", "6"},
          {"save-every-steps", "8"},
          {"keep-last", "4"},
          {"keep-best", "2"},
          {"on-save-error", "continue"},
          {"resume", "runs/a"},
          {"weights", "w.pt"},
          {"reinit", ""},
          {"optimizer-state", ""},
          {"run-dir", "elsewhere"},
          {"progress", "none"},
          {"name", "first"},
          {"tags", "a,b"},
          {"eval-every", "7"},
          {"tta", "airbench"},
          {"log-every", "3"},
          {"trace", "t.json"},
          {"trace-steps", "3:5"},
          {"log", "tensorboard"},
          {"inject", "kill:rank=1,step=2;delay:rank=any,step=3..4,ms=5"},
          {"nprocs", "2"}};
}

/// The data set is not opened.
TrainConfig resolved(const OptionTexts& texts, const std::optional<std::string>& config_file = std::nullopt) {
  return resolve(texts, {}, config_file, data::known_dataset("digits")).config;
}

/// What --config makes of the config.resolved.toml of `config`.
TrainConfig read_back(const TrainConfig& config) {
  const std::string text = to_toml(config);
  const tests::TempFolder folder;
  return resolved({}, folder.write("F.toml", tests::Bytes(text.begin(), text.end())).string());
}

/// They become floats, where a larger number would be infinite and a smaller one 0.
TEST(TrainOptions, OfNumbersAreWithinTheRangeOfFp32) {
  int numbers = 0;
  for (const TrainOption& option : train_options()) {
    if (option.value != "F" || option.name.ends_with("-mb")) continue;
    ++numbers;
    for (const char* text : {"1e39", "1e-46"}) {
      TrainConfig config;
      EXPECT_THROW(option.read(config, text), UsageError) << "--" << option.name << " " << text;
    }
  }
  EXPECT_GE(numbers, 9);
}

TEST(TrainOptions, SayHowMuchOfTheSeedCounts) { EXPECT_THAT(find_option("seed")->help, HasSubstr("lower 32 bits")); }

TEST(ConfigResolvedToml, ComesBackThroughConfig) {
  const TrainConfig before = resolved(everything_else());
  const TrainConfig after = read_back(before);
  for (const TrainOption& option : train_options()) {
    if (option.name == "run-dir" || option.name == "nprocs") continue;
    EXPECT_EQ(option.show(after), option.show(before)) << option.name;
  }
  EXPECT_EQ(after.data_dir, before.data_dir);
  EXPECT_EQ(after.seed, before.seed);
  EXPECT_EQ(after.timeout, before.timeout);
}

TEST(ConfigResolvedToml, LeavesOutWhereTheRunHappens) {
  const TrainConfig before = resolved(everything_else());
  const TrainConfig after = read_back(before);
  EXPECT_EQ(after.run_dir, "");
  EXPECT_EQ(after.nprocs, 1);
}

TEST(ConfigResolvedToml, LeavesOutWhereOneStartOfTheRunBegan) {
  TrainConfig config;
  config.resume = "runs/a";
  std::string text = to_toml(config);
  const std::string line = "resume = \"runs/a\"\n";
  ASSERT_NE(text.find(line), std::string::npos);
  EXPECT_EQ(to_resolved_toml(config), text.erase(text.find(line), line.size()));
}

TEST(TrainOptions, TheTestsKnowThemAll) {
  const OptionTexts known = everything_else();
  for (const TrainOption& option : train_options()) EXPECT_TRUE(known.contains(option.name)) << option.name;
}

TEST(TrainOptions, TheTableOfSingleOptionsHasThemAll) {
  std::set<std::string> names;
  for (const auto& [name, value, with] : tests::every_option()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    const TrainOption* option = find_option(name);
    ASSERT_TRUE(option) << name;
    OptionTexts texts(with.begin(), with.end());
    texts[name] = value;
    EXPECT_NE(option->show(resolved(texts)), option->show(TrainConfig())) << name;
  }
  EXPECT_EQ(names.size(), train_options().size());
}

TEST(TrainOptions, AreSpelledAsNamesAreAndOnlyOnce) {
  std::set<std::string> names;
  for (const TrainOption& option : train_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_EQ(option.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos) << option.name;
    EXPECT_EQ(find_option(option.name), &option);
  }
  EXPECT_EQ(find_option("none"), nullptr);
}

TEST(TrainOptions, HaveVariables) { EXPECT_EQ(variable_of(*find_option("batch-size")), "GRADRING_BATCH_SIZE"); }

nn::Checkpointing read(std::string_view text) {
  nn::Checkpointing checkpointing{.kind = Kind::segments, .segments = 9};  // what came before is gone
  read_checkpointing("checkpoint-activations", text, checkpointing);
  return checkpointing;
}

TEST(CheckpointingOptions, IsAWordOrANumberOfSegments) {
  EXPECT_EQ(read("none").kind, Kind::none);
  EXPECT_EQ(read("auto").kind, Kind::automatic);
  EXPECT_EQ(read("none").segments, 0);
  EXPECT_EQ(read("12").kind, Kind::segments);
  EXPECT_EQ(read("12").segments, 12);
  for (const char* text : {"none", "auto", "3"}) EXPECT_EQ(show_checkpointing(read(text)), text);
}

TEST(CheckpointingOptions, RejectsOtherWordsAndNumbers) {
  for (const char* wrong : {"", "0", "-1", "2.5", "all", "AUTO", "99999999999999999999"})
    EXPECT_THROW(read(wrong), UsageError) << wrong;
  try {
    read("all");
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("none, auto or a number of segments"));
  }
}

TEST(CheckpointingOptions, ABudgetIsMegabytesOrNone) {
  EXPECT_EQ(parse_budget("activation-budget-mb", "0"), 0u);
  EXPECT_EQ(parse_budget("activation-budget-mb", "1.5"), 3u << 19);
  EXPECT_THROW(parse_budget("activation-budget-mb", "-1"), UsageError);
}

TEST(CheckpointingOptions, ABudgetBelongsToAuto) {
  const auto settle = [](const char* way) {
    return resolve({{"checkpoint-activations", way}, {"activation-budget-mb", "8"}}, {}, std::nullopt).config;
  };
  EXPECT_EQ(settle("auto").checkpointing.budget_bytes, 8u << 20);
  EXPECT_THROW(settle("none"), UsageError);
  EXPECT_THROW(settle("4"), UsageError);
}

}  // namespace
}  // namespace gradring::train
