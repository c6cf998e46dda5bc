// SPDX-License-Identifier: Apache-2.0
#include "train/report/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/report/environment_error.h"
#include "train/report/summary.h"

namespace gradring::train {
namespace {

using nlohmann::json;
using tests::lines_of;
using tests::message_of;
using ::testing::HasSubstr;

const StepRecord kStep{.step = 3,
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

TEST_F(JsonLines, SaysWhereASkippedStepAroseAndHowManyGradientsVanish) {
  JsonLinesSink sink(path_);
  StepRecord record = kStep;
  record.underflow = 0.25;
  sink.step(record);
  record.underflow = std::nullopt;
  record.skipped = true;
  record.non_finite = "fc_layers.0.weight";
  sink.step(record);
  const json first = json::parse(lines_of(path_).at(0)), second = json::parse(lines_of(path_).at(1));
  EXPECT_EQ(first.at("underflow"), 0.25);
  EXPECT_FALSE(first.contains("non_finite"));
  EXPECT_EQ(second.at("non_finite"), "fc_layers.0.weight");
  EXPECT_FALSE(second.contains("underflow"));
}

TEST_F(JsonLines, StepsThatAreUndoneAreTakenBackAndComeAnew) {
  JsonLinesSink sink(path_);
  StepRecord record = kStep;
  for (record.step = 1; record.step <= 5; ++record.step) sink.step(record);
  sink.eval({.epoch = 1});
  sink.went_back(3, 1);
  record.step = 4;
  record.loss = 7;
  sink.step(record);
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(json::parse(lines[i]).at("step"), i + 1);
  EXPECT_EQ(json::parse(lines[3]).at("loss"), 7);
}

TEST_F(JsonLines, AnEvaluationIsOneObject) {
  JsonLinesSink(path_).eval({.epoch = 1, .accuracy = 0.5, .loss = 0.75, .samples = 10000});
  ASSERT_EQ(lines_of(path_).size(), 1u);
  EXPECT_EQ(json::parse(lines_of(path_)[0]),
            json::parse(R"({"event": "eval", "epoch": 1, "accuracy": 0.5, "loss": 0.75, "samples": 10000})"));
}

TEST_F(JsonLines, AnEvaluationHoldsThatOfTheAverageWhereThereIsOne) {
  JsonLinesSink(path_).eval({.accuracy = 0.5, .loss = 1, .samples = 9, .ema_accuracy = 0.75, .ema_loss = 0.25});
  const json line = json::parse(lines_of(path_).at(0));
  EXPECT_EQ(line.at("ema_accuracy"), 0.75);
  EXPECT_EQ(line.at("ema_loss"), 0.25);
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
  Summary summary{.accuracy = 0.5,
                  .loss = 1.5,
                  .train_loss = 2.5,
                  .steps = 7,
                  .seconds = 0.25,
                  .samples_per_second = 100,
                  .world_size = 2,
                  .device = "cpu",
                  .backend = "reference",
                  .parameters_sha256 = "ab"};
  summary.planned_memory[MemoryClass::optimizer] = 40;
  summary.peak_memory[MemoryClass::optimizer] = 41;
  summary.peak_memory[MemoryClass::workspace] = 3;
  json written = json::parse(summary.to_json());
  const json memory = written.at("memory");
  written.erase("memory");
  EXPECT_EQ(written, json::parse(R"({"outcome": "finished", "accuracy": 0.5, "loss": 1.5, "train_loss": 2.5, "steps": 7,
      "seconds": 0.25, "samples_per_second": 100.0, "world_size": 2, "device": "cpu", "backend": "reference",
      "precision": "fp32", "parameters_sha256": "ab"})"));
  EXPECT_EQ(memory.size(), kMemoryClasses + 1);
  EXPECT_EQ(memory.at("optimizer"), json::parse(R"({"planned_bytes": 40, "peak_bytes": 41})"));
  EXPECT_EQ(memory.at("gradients"), json::parse(R"({"planned_bytes": 0, "peak_bytes": 0})"));
  EXPECT_EQ(memory.at("total"), json::parse(R"({"planned_bytes": 40, "peak_bytes": 44})"));
}

TEST(SummaryJson, IsReadBack) {
  Summary summary{.accuracy = 0.5, .loss = 1.5, .ema_accuracy = 0.75, .steps = 7, .world_size = 2, .device = "cpu"};
  summary.planned_memory[MemoryClass::optimizer] = 40;
  summary.peak_memory[MemoryClass::workspace] = 3;
  const auto read = Summary::from_json(summary.to_json());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_json(), summary.to_json());
  EXPECT_EQ(read->peak_memory, summary.peak_memory);
}

class Metrics : public JsonLines {
 protected:
  void SetUp() override {
    JsonLinesSink sink(path_);
    for (StepRecord step = kStep; step.step <= 6; ++step.step) {
      step.epoch = step.step > 5;
      sink.step(step);
      if (step.step == 5) sink.eval({.epoch = 0});
    }
    sink.eval({.epoch = 1});
  }
  std::vector<std::string> all() const { return lines_of(path_); }
  std::vector<std::string> kept(std::int64_t steps, std::int64_t epoch) const {
    keep_metrics_until(path_, steps, epoch);
    return all();
  }
};

TEST_F(Metrics, BehindACheckpointAreTakenBack) {
  const auto whole = all();
  ASSERT_EQ(whole.size(), 6u);
  const auto first = [&whole](std::size_t lines) { return std::vector(whole.begin(), whole.begin() + lines); };
  EXPECT_EQ(kept(6, 2), whole);
  EXPECT_EQ(kept(6, 1), first(5)) << "the evaluation of an epoch that is not over";
  EXPECT_EQ(kept(5, 1), first(4)) << "the evaluation of an epoch that is over stays";
  EXPECT_EQ(kept(4, 0), first(2));
  EXPECT_EQ(kept(0, 0), first(0));
}

TEST_F(Metrics, LoseALineThatWasCutShort) {
  const auto whole = all();
  std::ofstream(path_, std::ios::app) << R"({"event":"step","step":7,)";
  EXPECT_EQ(kept(9, 9), whole);
  std::ofstream(path_, std::ios::app) << R"({"event":"eval","epoch":1})";
  EXPECT_EQ(kept(9, 9), whole) << "whole but for the end of the line, behind which the next one would stand";
}

TEST_F(Metrics, ThatCannotBeReadAreNotShortened) {
  const auto reading = [](const std::filesystem::path& path) {
    return message_of<EnvironmentError>([&] { keep_metrics_until(path, 3, 0); });
  };
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(reading(fifo), HasSubstr("it is not a regular file; nothing was removed from it"));
  EXPECT_THAT(reading(folder_.path()), HasSubstr("it is not a regular file"));
  if (!std::filesystem::exists("/proc/self/mem")) return;  // opens, and gives EIO
  EXPECT_THAT(reading("/proc/self/mem"), HasSubstr("cannot read /proc/self/mem: a read failed"));
}

TEST_F(Metrics, ThatAreNotThereStaySo) {
  keep_metrics_until(folder_.path() / "none.jsonl", 3, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none.jsonl"));
}

}  // namespace
}  // namespace gradring::train
