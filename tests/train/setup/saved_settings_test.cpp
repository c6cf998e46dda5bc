// SPDX-License-Identifier: Apache-2.0
#include "train/setup/saved_settings.h"

#include <gtest/gtest.h>

#include "train/config/resolve.h"

namespace gradring::train {
namespace {

Checkpoint with_settings(const nlohmann::ordered_json& settings) {
  Checkpoint checkpoint;
  checkpoint.about["settings"] = settings;
  return checkpoint;
}

TEST(SavedSettings, AreThoseOfTheRun) {
  TrainConfig config;
  config.dataset = "cifar10";
  config.data_dir = "a \"strange\" folder";
  const Checkpoint checkpoint = with_settings(to_toml(config));
  EXPECT_EQ(saved_setting(checkpoint, "dataset"), "cifar10");
  EXPECT_EQ(saved_setting(checkpoint, "model"), "convnet");
  EXPECT_EQ(saved_setting(checkpoint, "data-dir"), config.data_dir);
}

TEST(SavedSettings, AreThereAsAWhole) {
  EXPECT_EQ(saved_settings(with_settings("seed = 3")), "seed = 3");
  EXPECT_EQ(saved_settings({}), std::nullopt);
  EXPECT_EQ(saved_settings(with_settings(7)), std::nullopt);
}

TEST(SavedSettings, AreEmptyWhereNothingIsSaid) {
  EXPECT_EQ(saved_setting({}, "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings("seed = 3"), "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings("dataset = 3"), "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings("no TOML at all"), "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings(7), "dataset"), "");
}

TEST(SavedSettings, AreEmptyWhereTheTextWouldExhaustTheStack) {
  std::string deep = "dataset = \"digits\"\na";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(saved_setting(with_settings(deep + " = 1"), "dataset"), "");
}

}  // namespace
}  // namespace gradring::train
