// SPDX-License-Identifier: Apache-2.0
#include "train/config/changed_options.h"

#include <gtest/gtest.h>

#include "train/config/resolve.h"

namespace gradring::train {
namespace {

std::string changes(std::string_view before, const TrainConfig& given, const TrainConfig& resolved) {
  const auto found = changed_options(before, given, resolved);
  return found ? to_string(*found) : "unknown";
}

TEST(ChangedOptions, AreNamedWithTheirOldAndNewValues) {
  TrainConfig before, now;
  now.epochs = 3;
  now.learning_rate = 0.002;
  now.data_dir = "else where";
  now.optimizer.nesterov = true;
  EXPECT_EQ(changes(to_toml(before), now, now),
            "data-dir \"\" -> else where, epochs 2 -> 3, lr 0.001 -> 0.002, nesterov false -> true");
  EXPECT_EQ(changes(to_resolved_toml(now), now, now), "");
}

TEST(ChangedOptions, AreUnknownWithoutReadableSettings) {
  for (const char* text : {"", "half a fi", "epochs = [", "# only a comment\n"})
    EXPECT_EQ(changes(text, TrainConfig(), TrainConfig()), "unknown") << text;
}

TEST(ChangedOptions, DoNotIncludeWhereARunStartsAndHowItIsShown) {
  TrainConfig now;
  now.resume = "auto";
  now.weights = "w.pt";
  now.run_dir = "run";
  now.nprocs = 4;
  now.progress = "bar";
  EXPECT_EQ(changes(to_toml(TrainConfig()), now, now), "");
}

/// A run that began with --threads 0 on 4 cores has `threads = 4` in its config, or 0 if an older version wrote it.
TEST(ChangedOptions, AreNotWhatAutoStandsFor) {
  TrainConfig given, resolved;
  resolved.device = "cpu";
  resolved.threads = 4;
  EXPECT_EQ(changes(to_toml(given), given, resolved), "");
  EXPECT_EQ(changes(to_toml(resolved), given, resolved), "");
  resolved.threads = 2;
  EXPECT_EQ(changes("threads = 4\n", given, resolved), "threads 4 -> 2");
}

TEST(ChangedOptions, PassOverWhatAnotherVersionWrote) {
  const TrainConfig now{.epochs = 3};
  EXPECT_EQ(changes("# a comment\nwarp = 9\nepochs = \"many\"\nseed = 7\n", now, now), "epochs 2 -> 3, seed 7 -> 0");
  EXPECT_EQ(changes("not TOML", now, now), "unknown");
}

}  // namespace
}  // namespace gradring::train
