// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/summary.h"
#include "tests/support/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gradring::train {
namespace {

using nlohmann::json;

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
  json written = tests::parse_json(summary.to_json());
  const json memory = written.at("memory");
  written.erase("memory");
  EXPECT_EQ(written,
            tests::parse_json(R"({"outcome": "finished", "accuracy": 0.5, "loss": 1.5, "train_loss": 2.5, "steps": 7,
      "seconds": 0.25, "samples_per_second": 100.0, "world_size": 2, "device": "cpu", "backend": "reference",
      "precision": "fp32", "parameters_sha256": "ab"})"));
  EXPECT_EQ(memory.size(), kMemoryClasses + 1);
  EXPECT_EQ(memory.at("optimizer"), tests::parse_json(R"({"planned_bytes": 40, "peak_bytes": 41})"));
  EXPECT_EQ(memory.at("gradients"), tests::parse_json(R"({"planned_bytes": 0, "peak_bytes": 0})"));
  EXPECT_EQ(memory.at("total"), tests::parse_json(R"({"planned_bytes": 40, "peak_bytes": 44})"));
}

TEST(SummaryJson, IsReadBack) {
  Summary summary{.accuracy = 0.5, .loss = 1.5, .ema_accuracy = 0.75, .steps = 7, .world_size = 2, .device = "cpu"};
  summary.planned_memory[MemoryClass::optimizer] = 40;
  summary.peak_memory[MemoryClass::workspace] = 3;
  summary.top5_accuracy = 0.875;
  summary.tta_accuracy = 0.625;
  summary.classes = {{.name = "caf\u00e9", .samples = 3, .precision = 0.5, .recall = 1.0 / 3}, {.name = "dog"}};
  summary.validation_classes = {{.name = "dog", .samples = 2, .recall = 0.5}};
  const auto read = Summary::from_json(summary.to_json());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tta_accuracy, 0.625);
  ASSERT_EQ(read->validation_classes.size(), 1u);
  EXPECT_EQ(read->validation_classes[0].recall, 0.5);
  ASSERT_EQ(read->classes.size(), 2u);
  EXPECT_EQ(read->classes[0].recall, 1.0 / 3);
  EXPECT_EQ(read->classes[1].precision, std::nullopt);
  EXPECT_EQ(read->to_json(), summary.to_json());
  EXPECT_EQ(read->peak_memory, summary.peak_memory);
}

/// An epoch without a finite loss: 0 would be the best of all.
TEST(SummaryJson, HasNullForALossThatIsMissing) {
  const Summary summary{.loss = 1.5, .train_loss = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(tests::parse_json(summary.to_json()).at("train_loss").is_null());
  const auto read = Summary::from_json(summary.to_json());
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(read->train_loss));
  EXPECT_EQ(read->loss, 1.5);
}

TEST(UnfinishedRun, HoldsProgressAndReason) {
  const UnfinishedRun run{.outcome = Outcome::diverged,
                          .reason = "the loss is \"NaN\"\xff",
                          .steps = 7,
                          .epoch = 1,
                          .seconds = 0.25,
                          .samples_per_second = 100,
                          .world_size = 2,
                          .device = "cpu",
                          .backend = "cpu",
                          .precision = "fp32"};
  json written = tests::parse_json(run.to_json());
  EXPECT_EQ(written.at("reason").get<std::string>().substr(0, 17), "the loss is \"NaN\"");
  written.erase("reason");
  EXPECT_EQ(written, tests::parse_json(R"({"outcome": "diverged", "steps": 7, "epoch": 1, "seconds": 0.25,
      "samples_per_second": 100.0, "world_size": 2, "device": "cpu", "backend": "cpu", "precision": "fp32"})"));
}

TEST(UnfinishedRun, IsNotReadAsSummary) {
  EXPECT_FALSE(Summary::from_json(UnfinishedRun{.outcome = Outcome::interrupted}.to_json()));
  EXPECT_FALSE(Summary::from_json(""));
  EXPECT_FALSE(Summary::from_json("[]"));
  EXPECT_FALSE(Summary::from_json(R"({"outcome": "finished", "steps": 3})"));
}

TEST(Outcome, HasItsName) {
  EXPECT_EQ(name_of(Outcome::finished), "finished");
  EXPECT_EQ(name_of(Outcome::interrupted), "interrupted");
  EXPECT_EQ(name_of(Outcome::diverged), "diverged");
  EXPECT_EQ(name_of(Outcome::failed), "failed");
}

}  // namespace
}  // namespace gradring::train
