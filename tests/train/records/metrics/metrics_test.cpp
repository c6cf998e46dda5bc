// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <ctime>
#include <fstream>

#include "tests/data/support/message_of.h"
#include "tests/support/allocated_bytes.h"
#include "tests/support/json.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/metrics_lines.h"

namespace gradring::train {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::lines_of;
using tests::message_of;

const StepRecord kStep{.step = 3,
                       .epoch = 2,
                       .step_of_epoch = 0,
                       .steps_in_epoch = 2,
                       .loss = 2.25,
                       .learning_rate = 1e-3,
                       .samples = 64,
                       .duration = std::chrono::milliseconds(500),
                       .data_wait = std::chrono::milliseconds(250),
                       .exposed_communication = std::chrono::milliseconds(125),
                       .gradient_norm = 0.5};

class JsonLines : public ::testing::Test {
 protected:
  tests::TempFolder folder_;
  std::filesystem::path path_ = folder_.path() / "metrics.jsonl";
};

/// A line without its time, which must be that of the test.
json without_time(const std::string& line) {
  json parsed = tests::parse_json(line);
  EXPECT_NEAR(parsed.at("time").get<double>(), static_cast<double>(std::time(nullptr)), 60);
  parsed.erase("time");
  return parsed;
}

TEST_F(JsonLines, WritesStepAsOneObject) {
  JsonLinesSink(path_).event(kStep);
  ASSERT_EQ(lines_of(path_).size(), 1u);
  EXPECT_EQ(without_time(lines_of(path_)[0]),
            tests::parse_json(R"({"event": "train", "step": 3, "epoch": 2, "loss": 2.25,
      "lr": 0.001, "samples": 64, "samples_per_second": 128.0, "seconds": 0.5, "data_wait": 0.25,
      "exposed_communication": 0.125, "gradient_norm": 0.5, "loss_scale": 1.0, "skipped": false})"));
}

TEST_F(JsonLines, WritesPhasesThatWereMeasured) {
  StepRecord record = kStep;
  record.forward = 0.0625;
  record.backward = 0.125;
  record.optimizer = 0.03125;
  JsonLinesSink(path_).event(record);
  const json written = without_time(lines_of(path_).at(0));
  EXPECT_EQ(written.at("forward"), 0.0625);
  EXPECT_EQ(written.at("backward"), 0.125);
  EXPECT_EQ(written.at("optimizer"), 0.03125);
}

TEST_F(JsonLines, RecordsNonFiniteParameterAndUnderflow) {
  JsonLinesSink sink(path_);
  StepRecord record = kStep;
  record.underflow = 0.25;
  sink.event(record);
  record.underflow = std::nullopt;
  record.skipped = true;
  record.non_finite = "fc_layers.0.weight";
  sink.event(record);
  const json first = tests::parse_json(lines_of(path_).at(0)), second = tests::parse_json(lines_of(path_).at(1));
  EXPECT_EQ(first.at("underflow"), 0.25);
  EXPECT_FALSE(first.contains("non_finite"));
  EXPECT_EQ(second.at("non_finite"), "fc_layers.0.weight");
  EXPECT_FALSE(second.contains("underflow"));
}

TEST_F(JsonLines, RemovesRolledBackSteps) {
  JsonLinesSink sink(path_);
  StepRecord record = kStep;
  for (record.step = 1; record.step <= 5; ++record.step) sink.event(record);
  sink.event(EvalRecord{.step = 5, .epoch = 2});
  sink.rolled_back(3, 1);
  record.step = 4;
  record.loss = 7;
  sink.event(record);
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(tests::parse_json(lines[i]).at("step"), i + 1);
  EXPECT_EQ(tests::parse_json(lines[3]).at("loss"), 7);
}

TEST_F(JsonLines, WritesEvaluationAsOneObject) {
  JsonLinesSink(path_).event(
      EvalRecord{.step = 9, .epoch = 1, .accuracy = 0.5, .loss = 0.75, .samples = 10000, .seconds = 0.5});
  ASSERT_EQ(lines_of(path_).size(), 1u);
  EXPECT_EQ(without_time(lines_of(path_)[0]),
            tests::parse_json(R"({"event": "eval", "step": 9, "epoch": 1, "ends_epoch": true, "accuracy": 0.5,
      "loss": 0.75, "samples": 10000, "seconds": 0.5})"));
}

TEST_F(JsonLines, RecordsEvaluationOfAveragedWeights) {
  JsonLinesSink(path_).event(
      EvalRecord{.accuracy = 0.5, .loss = 1, .samples = 9, .ema_accuracy = 0.75, .ema_loss = 0.25});
  const json line = tests::parse_json(lines_of(path_).at(0));
  EXPECT_EQ(line.at("ema_accuracy"), 0.75);
  EXPECT_EQ(line.at("ema_loss"), 0.25);
  EXPECT_FALSE(line.contains("top5_accuracy"));
}

TEST_F(JsonLines, RecordsTopFive) {
  JsonLinesSink(path_).event(EvalRecord{.accuracy = 0.5, .loss = 1, .samples = 9, .top5_accuracy = 0.875});
  EXPECT_EQ(tests::parse_json(lines_of(path_).at(0)).at("top5_accuracy"), 0.875);
}

TEST_F(JsonLines, WritesNanAsNull) {
  StepRecord record = kStep;
  record.loss = std::nan("");
  record.duration = {};
  JsonLinesSink(path_).event(record);
  const json line = tests::parse_json(lines_of(path_).at(0));
  EXPECT_TRUE(line.at("loss").is_null());
  EXPECT_EQ(line.at("samples_per_second"), 0);
}

TEST_F(JsonLines, HoldsOnlyCompleteLinesOnFullDisk) {
  JsonLinesSink sink(path_);
  const tests::FileSizeLimit disk(1000);
  for (int i = 0; i < 100; ++i) sink.event(kStep);
  EXPECT_THROW(sink.finish(), EnvironmentError);
  EXPECT_GT(lines_of(path_).size(), 1u);
  for (const std::string& line : lines_of(path_)) EXPECT_TRUE(json::accept(line)) << line;
}

TEST_F(JsonLines, WritesLinesOnceTheDiskHasSpaceAgain) {
  JsonLinesSink sink(path_);
  StepRecord record = kStep;
  {
    const tests::FileSizeLimit disk(1000);
    for (record.step = 1; record.step <= 50; ++record.step) sink.event(record);
    EXPECT_LT(lines_of(path_).size(), 50u);
  }
  sink.event(record);
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 51u);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(json::parse(lines[i]).at("step"), i + 1);
  EXPECT_NO_THROW(sink.finish());
}

TEST_F(JsonLines, RemovesRolledBackStepsThatWaitForSpace) {
  JsonLinesSink sink(path_);
  StepRecord record = kStep;
  {
    const tests::FileSizeLimit disk(1000);
    for (record.step = 1; record.step <= 20; ++record.step) sink.event(record);
    sink.rolled_back(15, 1);
  }
  record.step = 16;
  sink.event(record);
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 16u);
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(json::parse(lines[i]).at("step"), i + 1);
}

TEST_F(JsonLines, ReportsLinesBeyondTheMemoryBound) {
  JsonLinesSink sink(path_);
  {
    const tests::FileSizeLimit disk(1000);
    for (int i = 0; i < 10'000; ++i) sink.event(kStep);
  }
  sink.event(kStep);
  EXPECT_THAT(message_of<EnvironmentError>([&] { sink.finish(); }),
              AllOf(HasSubstr("metrics.jsonl lacks "), HasSubstr("did not fit into memory")));
  EXPECT_GT(std::filesystem::file_size(path_), std::uintmax_t{1} << 20);
}

class Metrics : public JsonLines {
 protected:
  void SetUp() override {
    JsonLinesSink sink(path_);
    for (StepRecord step = kStep; step.step <= 6; ++step.step) {
      step.epoch = step.step > 5 ? 2 : 1;
      sink.event(step);
      if (step.step == 4) sink.event(EvalRecord{.step = 4, .epoch = 1, .ends_epoch = false});
      if (step.step == 5) sink.event(EvalRecord{.step = 5, .epoch = 1});
    }
    sink.event(EvalRecord{.step = 6, .epoch = 2});
  }
  std::vector<std::string> all() const { return lines_of(path_); }
  std::vector<std::string> kept(std::int64_t steps, std::int64_t epoch) const {
    truncate_metrics(path_, steps, epoch);
    return all();
  }
};

TEST_F(Metrics, KeepFaultsOfRepeatedSteps) {
  { JsonLinesSink(path_).event(FaultRecord{.step = 6, .rank = 1, .kind = "kill"}); }
  EXPECT_THAT(kept(4, 0),
              ElementsAre(HasSubstr(R"("step":3,)"), HasSubstr(R"("step":4,)"), HasSubstr("eval"), HasSubstr("kill")));
  { JsonLinesSink(path_).event(StepRecord{.step = 5, .epoch = 1}); }
  EXPECT_EQ(kept(5, 0).size(), 5u);
  EXPECT_THAT(kept(3, 0), ElementsAre(HasSubstr(R"("step":3,)"), HasSubstr("kill")));
}

TEST_F(Metrics, TruncatesToCheckpoint) {
  const auto whole = all();
  ASSERT_EQ(whole.size(), 7u);
  const auto first = [&whole](std::size_t lines) { return std::vector(whole.begin(), whole.begin() + lines); };
  EXPECT_EQ(kept(6, 2), whole);
  EXPECT_EQ(kept(6, 1), first(6)) << "removes the evaluation of an unfinished epoch";
  EXPECT_EQ(kept(5, 1), first(5)) << "keeps the evaluation of a finished epoch";
  EXPECT_EQ(kept(4, 0), first(3)) << "keeps an evaluation within an epoch";
  EXPECT_EQ(kept(0, 0), first(0));
}

TEST_F(Metrics, RemovesIncompleteLine) {
  const auto whole = all();
  std::ofstream(path_, std::ios::app) << R"({"event":"train","time":1,"step":7,)";
  EXPECT_EQ(kept(9, 9), whole);
  std::ofstream(path_, std::ios::app) << R"({"event":"eval","epoch":1})";
  EXPECT_EQ(kept(9, 9), whole) << "only the line break is missing";
}

/// Such as NULs after a power loss, or an event of a newer version.
TEST_F(Metrics, KeepsEventsBehindADamagedLine) {
  const auto whole = all();
  std::ofstream(path_) << std::string(100, '\0') << "\n{\"event\":\"newer\"}\n";
  for (const std::string& line : whole) std::ofstream(path_, std::ios::app) << line << '\n';
  EXPECT_EQ(kept(6, 2).size(), whole.size() + 2);
  std::ofstream(path_, std::ios::app) << "damaged\n";
  EXPECT_EQ(kept(6, 2).size(), whole.size() + 2) << "no event is behind it";
  EXPECT_THAT(kept(0, 0), testing::IsEmpty());
}

/// With 1 TiB, a line of it would not fit into memory.
TEST_F(Metrics, RemovesALineOfAnyLength) {
  const auto whole = all();
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40);
  tests::reset_peak_allocated_bytes();
  const std::size_t before = tests::allocated_bytes();
  EXPECT_EQ(kept(9, 9), whole);
  EXPECT_LT(tests::peak_allocated_bytes() - before, 4 * kMostLineBytes);
}

TEST_F(Metrics, DoesNotTruncateUnreadableFile) {
  const auto reading = [](const std::filesystem::path& path) {
    return message_of<EnvironmentError>([&] { truncate_metrics(path, 3, 0); });
  };
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(reading(fifo), HasSubstr("it is not a regular file; nothing was removed from it"));
  EXPECT_THAT(reading(folder_.path()), HasSubstr("it is not a regular file"));
  if (!std::filesystem::exists("/proc/self/mem")) return;  // opens, and gives EIO
  EXPECT_THAT(reading("/proc/self/mem"), HasSubstr("cannot read /proc/self/mem: a read failed"));
}

TEST_F(Metrics, IgnoresMissingFile) {
  truncate_metrics(folder_.path() / "none.jsonl", 3, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none.jsonl"));
}

}  // namespace
}  // namespace gradring::train
