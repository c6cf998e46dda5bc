// SPDX-License-Identifier: Apache-2.0
// gradring train --preset, by the program that was built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using tests::ProgramEnd;
using tests::Workplace;

TEST(Presets, AreListedWithWhatIsKnownOfThem) {
  const Workplace place;
  const ProgramEnd end = place.run({"train", "--preset", "ls"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("cifar10-94\n  93.90 % on CIFAR-10"), HasSubstr("gradring bench seeds")));
}

TEST(Presets, SetOptionsThatOthersOverride) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"train", "--preset", "cifar10-94", "--epochs", "2", "--data-dir", "data", "--print-config"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(ContainsRegex("model = \"airbench94\" +# preset cifar10-94:"),
                             ContainsRegex("epochs = 2 +# command line"), HasSubstr("preset = \"cifar10-94\"")));
}

TEST(Presets, OfAnUnknownNameSuggestTheNearest) {
  const Workplace place;
  const ProgramEnd end = place.run({"train", "--preset", "cifar-94"});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("Did you mean 'cifar10-94'?"));
  EXPECT_EQ(place.run({"plan", "--preset", "mnits"}).code, 2);
}

TEST(Presets, OfARunAreInItsSettings) {
  const Workplace place;
  const tests::Words words = {"train",    "--preset",     "cifar10-94",  "--dataset",   "digits", "--steps",
                              "1",        "--batch-size", "8",           "--progress",  "none",   "--model",
                              "convnet",  "--group",      "*.bias:lr=1", "--optimizer", "sgd",    "--muon-scale",
                              "original", "--muon-steps", "5",           "--tta",       "none",   "--device",
                              "cpu",      "--run-dir",    "run"};
  const ProgramEnd end = place.run(words);
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(place.run({"train", "--config", "run/config.resolved.toml", "--resume", "auto", "--run-dir", "run"}).code,
            0);
}

}  // namespace
}  // namespace gradring
