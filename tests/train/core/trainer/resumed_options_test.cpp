// SPDX-License-Identifier: Apache-2.0
// What a resume has that does not repeat an option, for every option: TrainOption::on_resume says so, and --help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "data/datasets/open_dataset.h"
#include "tests/train/support/every_option.h"
#include "tests/train/support/training_run.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"

namespace gradring::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using train::Checkpoint;
using train::OnResume;
using train::OptionTexts;
using train::TrainConfig;

constexpr std::int64_t kSamples = 12;  // three steps of four

data::InMemoryDataset named_set(const std::string& name) {
  static const data::InMemoryDataset digits = head_of(*data::open_dataset("digits", data::Split::train, ""), kSamples);
  data::InMemoryDataset::Contents contents{
      .name = name, .shape = digits.shape(), .classes = digits.classes(), .pixels = {}, .labels = {}};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    std::ranges::copy(digits.pixels(i), std::back_inserter(contents.pixels));
    contents.labels.push_back(digits.label(i));
  }
  return data::InMemoryDataset(std::move(contents));
}

TrainConfig config_of(const OptionTexts& texts) {
  TrainConfig config = config_for(2, 4);
  for (const auto& [name, text] : texts) train::find_option(name)->read(config, text);
  return config;
}

/// A resume with the options without which `option` has no effect, but not with itself; without these where they would
/// be invalid alone.
TrainConfig resume_without(const OneOption& option) {
  const TrainConfig config = config_of({option.with.begin(), option.with.end()});
  try {
    train::validate(config);
    return config;
  } catch (const train::UsageError&) {
    return config_of({});
  }
}

/// Checkpoints of the first epoch.
struct Saved {
  Checkpoint within, at_end;
};

Saved trained(TrainConfig config) {
  const data::InMemoryDataset set = named_set(config.dataset), test_set = named_set("digits");
  config.epochs = 1;
  config.steps = 0;
  config.save_every_steps = 1;
  config.data_parallel = 1;  // the devices of a test are one
  TrainingRun run;
  train(run, 1, config, set, test_set, {}, {}, config.val_split ? &test_set : nullptr);
  return {.within = run.checkpoints.all.front(), .at_end = run.checkpoints.all.back()};
}

/// Why checkpoints are rejected; empty if they are not.
struct Rejections {
  std::string within, at_end;
};

std::string rejection(train::Trainer& trainer, const Checkpoint& from) try {
  trainer.resume({.checkpoint = from, .from = "step-" + std::to_string(from.step)});
  return {};
} catch (const train::UsageError& error) {
  return error.what();
} catch (const train::CheckpointError& error) {
  return error.what();
}

Rejections rejections(const TrainConfig& config, const Saved& saved) {
  struct Seen {};  // ends the rank
  const data::InMemoryDataset set = named_set(config.dataset), test_set = named_set("digits");
  Rejections found{.within = "the resume was not reached", .at_end = {}};
  try {
    const auto resume_both = [&](train::Trainer& trainer, int) {
      found = {.within = rejection(trainer, saved.within), .at_end = rejection(trainer, saved.at_end)};
      throw Seen();
    };
    TrainingRun run;
    train(run, 1, config, set, test_set, resume_both, {}, config.val_split ? &test_set : nullptr);
  } catch (const Seen&) {
  }
  return found;
}

TEST(ResumedOptions, HaveWhatTheTableSaysIfTheyAreNotRepeated) {
  for (const OneOption& option : every_option()) {
    if (option.name == "model-text" || option.name == "preset") continue;  // part of --model; stands for others
    if (option.name == "image-size") continue;                             // of files: image_folder_test.cpp
    SCOPED_TRACE(option.name);
    OptionTexts texts(option.with.begin(), option.with.end());
    texts[option.name] = option.value;
    const TrainConfig before = config_of(texts), now = resume_without(option);
    const auto [within, at_end] = rejections(now, trained(before));
    switch (train::find_option(option.name)->on_resume) {
      case OnResume::default_value:
      case OnResume::run:
      case OnResume::checkpoint: EXPECT_EQ(within + at_end, ""); break;
      case OnResume::must_fit:
        for (const std::string& reason : {within, at_end}) EXPECT_THAT(reason, HasSubstr("--" + option.name));
        break;
      case OnResume::must_fit_within_epoch:
        EXPECT_THAT(within, HasSubstr("was saved in epoch 1, after sample "));
        EXPECT_EQ(at_end, "");
        break;
    }
  }
}

/// A default that takes the place of a value is named.
TEST(ResumedOptions, AreNamedWhereTheirDefaultReturns) {
  constexpr std::string_view kOfOneStart[] = {"resume", "run-dir", "nprocs", "progress"};
  for (const OneOption& option : every_option()) {
    if (train::find_option(option.name)->on_resume != OnResume::default_value || option.name == "model-text" ||
        option.name == "preset")
      continue;
    OptionTexts texts(option.with.begin(), option.with.end());
    const TrainConfig now = config_of(texts);
    texts[option.name] = option.value;
    const auto changes = train::changed_options(train::to_toml(config_of(texts)), now, now);
    ASSERT_TRUE(changes);
    const bool is_of_one_start = std::ranges::find(kOfOneStart, option.name) != std::end(kOfOneStart);
    EXPECT_EQ(changes->size(), is_of_one_start ? 0u : 1u) << option.name;
    if (!is_of_one_start && !changes->empty()) {
      EXPECT_EQ(changes->front().name, option.name);
    }
  }
}

/// Only what is not given, only where the run has it, and nothing else.
TEST(ResumedOptions, KeepTheValueOfTheRunWhereTheTableSaysSo) {
  const TrainConfig run{.name = "a \"b\"", .tags = "x,y", .log_every = 3};
  TrainConfig resumed;
  train::keep_settings(train::to_toml(run), resumed);
  EXPECT_EQ(resumed.name, run.name);
  EXPECT_EQ(resumed.tags, run.tags);
  EXPECT_EQ(resumed.log_every, TrainConfig().log_every);
  TrainConfig named{.name = "c"};
  train::keep_settings(train::to_toml(run), named);
  EXPECT_EQ(named.name, "c");
  EXPECT_EQ(named.tags, run.tags);
  train::keep_settings("not TOML", named);
  train::keep_settings("tags = \"z\"\n", named);
  EXPECT_EQ(named.tags, run.tags);
  for (const OneOption& option : every_option()) {
    const bool keeps = train::find_option(option.name)->on_resume == OnResume::run;
    EXPECT_EQ(keeps, option.name == "name" || option.name == "tags") << option.name;
  }
}

}  // namespace
}  // namespace gradring::tests
