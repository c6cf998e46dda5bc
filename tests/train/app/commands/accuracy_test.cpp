// SPDX-License-Identifier: Apache-2.0
// The commands that a person types, on the real data sets, and the accuracy that they must reach.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/json.h"
#include "tests/support/run_program.h"
#include "tests/support/sanitizer.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using namespace tests;  // NOLINT(google-build-using-namespace): support of this test alone

struct Case {
  std::string name;
  std::string dataset;
  std::string epochs;
  std::string precision;
  double accuracy;
};

class Accuracy : public ::testing::TestWithParam<Case> {};

TEST_P(Accuracy, TwoRanksByTheLauncherReachIt) {
  if (!kSanitizer.empty()) GTEST_SKIP() << "whole trainings take too long under a sanitizer, and say nothing new";
  const char* root = std::getenv("GRADRING_DATA_DIR");
  if (!root) GTEST_SKIP() << "set GRADRING_DATA_DIR to a folder with mnist/ and fashion-mnist/";
  const std::string data_dir = std::filesystem::absolute(root) / GetParam().dataset;
  const Workplace place;
  RunningProgram program(place.gradring({"launch",
                                         "--nproc-per-node",
                                         "2",
                                         "train",
                                         "--dataset",
                                         GetParam().dataset,
                                         "--data-dir",
                                         data_dir,
                                         "--epochs",
                                         GetParam().epochs,
                                         "--batch-size",
                                         "32",
                                         "--seed",
                                         "0",
                                         "--precision",
                                         GetParam().precision,
                                         "--device",
                                         "cpu",
                                         "--progress",
                                         "none",
                                         "--run-dir",
                                         "run"}));
  const ProgramEnd end = program.wait(std::chrono::minutes(8));
  ASSERT_EQ(end.code, 0) << end.err;
  const auto summary = tests::parse_json(text_of(place.path("run") / "summary.json"));
  EXPECT_EQ(summary.at("world_size"), 2);
  EXPECT_GE(summary.at("accuracy").get<double>(), GetParam().accuracy);
}

INSTANTIATE_TEST_SUITE_P(DataSets, Accuracy,
                         ::testing::Values(Case{"mnist", "mnist", "2", "fp32", 0.983},
                                           Case{"mnist_in_fp16", "mnist", "2", "fp16", 0.983},
                                           Case{"fashion_mnist", "fashion-mnist", "3", "fp32", 0.88}),
                         [](const auto& data_set) { return data_set.param.name; });

}  // namespace
}  // namespace gradring
