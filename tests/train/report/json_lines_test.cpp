// SPDX-License-Identifier: Apache-2.0
#include "train/report/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/report/environment_error.h"
#include "train/report/summary.h"

namespace gradring::train {
namespace {

using nlohmann::json;
using tests::lines_of;

constexpr StepRecord kStep{.step = 3,
                           .epoch = 1,
                           .step_of_epoch = 0,
                           .steps_in_epoch = 2,
                           .loss = 2.25,
                           .learning_rate = 1e-3,
                           .samples = 64,
                           .duration = std::chrono::milliseconds(500),
                           .data_wait = std::chrono::milliseconds(250),
                           .exposed_communication = std::chrono::milliseconds(125)};

class JsonLines : public ::testing::Test {
 protected:
  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "metrics.jsonl";
};

TEST_F(JsonLines, AStepIsOneObject) {
  JsonLinesSink(path_).step(kStep);
  ASSERT_EQ(lines_of(path_).size(), 1u);
  EXPECT_EQ(json::parse(lines_of(path_)[0]), json::parse(R"({"event": "step", "step": 3, "epoch": 1, "loss": 2.25,
      "lr": 0.001, "samples": 64, "samples_per_second": 128.0, "seconds": 0.5, "data_wait": 0.25,
      "exposed_communication": 0.125, "loss_scale": 1.0, "skipped": false})"));
}

TEST_F(JsonLines, AnEvaluationIsOneObject) {
  JsonLinesSink(path_).eval({.epoch = 1, .accuracy = 0.5, .loss = 0.75, .samples = 10000});
  ASSERT_EQ(lines_of(path_).size(), 1u);
  EXPECT_EQ(json::parse(lines_of(path_)[0]),
            json::parse(R"({"event": "eval", "epoch": 1, "accuracy": 0.5, "loss": 0.75, "samples": 10000})"));
}

TEST_F(JsonLines, StaysJsonWhereANumberIsNone) {
  StepRecord record = kStep;
  record.loss = std::nan("");
  record.duration = {};
  JsonLinesSink(path_).step(record);
  const json line = json::parse(lines_of(path_).at(0));
  EXPECT_TRUE(line.at("loss").is_null());
  EXPECT_EQ(line.at("samples_per_second"), 0);
}

TEST_F(JsonLines, HoldsWholeLinesOnlyWhenTheDiskIsFull) {
  JsonLinesSink sink(path_);
  const tests::FileSizeLimit disk(1000);
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) sink.step(kStep);
      },
      EnvironmentError);
  EXPECT_GT(lines_of(path_).size(), 1u);
  for (const std::string& line : lines_of(path_)) EXPECT_TRUE(json::accept(line)) << line;
}

TEST(SummaryJson, HoldsEveryField) {
  const Summary summary{.accuracy = 0.5,
                        .loss = 1.5,
                        .train_loss = 2.5,
                        .steps = 7,
                        .seconds = 0.25,
                        .samples_per_second = 100,
                        .world_size = 2,
                        .device = "cpu",
                        .backend = "reference",
                        .parameters_sha256 = "ab"};
  EXPECT_EQ(json::parse(summary.to_json()), json::parse(R"({"accuracy": 0.5, "loss": 1.5, "train_loss": 2.5, "steps": 7,
      "seconds": 0.25, "samples_per_second": 100.0, "world_size": 2, "device": "cpu", "backend": "reference",
      "precision": "fp32", "parameters_sha256": "ab"})"));
}

}  // namespace
}  // namespace gradring::train
