// SPDX-License-Identifier: Apache-2.0
#include "train/bench/training_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace gradring::tests {
namespace {

using testing::HasSubstr;
using train::bench::Measurement;
using train::bench::TrainingTable;

/// 100 samples/s on one core, 150 by DDP on two, 90 by PyTorch, 50 in fp16.
TrainingTable some_table() {
  TrainingTable table{.title = "a table", .note = "a note", .machine_cores = 2};
  table.rows = {
      {.layout = {.name = "one process"},
       .rounds =
           {{.seconds = 9, .seconds_per_epoch = 9, .samples_per_second = 90, .processor_seconds = 8, .losses = {2, 1}},
            {.seconds = 10,
             .seconds_per_epoch = 10,
             .samples_per_second = 100,
             .processor_seconds = 10,
             .accuracy = 0.5},
            {.seconds = 20,
             .seconds_per_epoch = 20,
             .samples_per_second = 110,
             .processor_seconds = 40,
             .losses = {2, 1}}}},
      {.layout = {.name = "DDP, two", .ranks = 2},
       .rounds = {{.seconds = 5, .seconds_per_epoch = 5, .samples_per_second = 150}}},
      {.layout = {.name = "DDP, fp16", .ranks = 2, .precision = "fp16"},
       .rounds = {{.seconds = 5, .seconds_per_epoch = 5, .samples_per_second = 50}}},
      {.layout = {.name = "PyTorch"},
       .framework = "PyTorch",
       .rounds = {{.seconds = 5, .seconds_per_epoch = 5, .samples_per_second = 90}}}};
  return table;
}

TEST(TrainingTable, ScalesFromOneCoreOfTheSameFrameworkAndPrecision) {
  const TrainingTable table = some_table();
  EXPECT_DOUBLE_EQ(table.efficiency(table.rows[0]).value(), 1);
  EXPECT_DOUBLE_EQ(table.efficiency(table.rows[1]).value(), 0.75);
  EXPECT_FALSE(table.efficiency(table.rows[2])) << "there is no fp16 row of one core";
  EXPECT_DOUBLE_EQ(table.efficiency(table.rows[3]).value(), 1);
}

TEST(TrainingTable, UtilisationIsOfAllCores) {
  const TrainingTable table = some_table();
  EXPECT_DOUBLE_EQ(table.utilisation(table.rows[0]).value(), 10.0 / (10 * 2)) << "medians of the rounds";
  EXPECT_FALSE(table.utilisation(table.rows[1])) << "not measured";
}

TEST(TrainingTable, WritesTheSameNumbersAsTextAndJson) {
  const TrainingTable table = some_table();
  const auto json = to_json(table, {});
  EXPECT_EQ(json.at("rows").at(1).at("efficiency"), 0.75);
  EXPECT_EQ(json.at("rows").at(0).at("seconds"), (std::vector<double>{9, 10, 20}));
  EXPECT_FALSE(json.at("rows").at(1).contains("accuracy"));
  EXPECT_FALSE(json.at("rows").at(3).contains("command")) << "PyTorch's is no command of ours";
  EXPECT_THAT(to_text(table), HasSubstr("DDP, two"));
}

TEST(MeasuredTraining, GivesEveryLayoutTheSameGlobalBatch) {
  const auto words = train::bench::command_of({.ranks = 2, .passes = 4, .global_batch = 256}, {.steps = 3});
  EXPECT_THAT(words, testing::IsSupersetOf({"--batch-size", "32", "--accumulate", "4", "--nprocs", "2"}));
  const auto devices = train::bench::command_of({.devices = 2, .global_batch = 256}, {});
  EXPECT_THAT(devices, testing::IsSupersetOf({"--batch-size", "256", "--data-parallel", "2"}));
}

TEST(MeasuredTraining, CountsResidentMemoryOfThisProcess) {
  const std::size_t before = train::bench::resident_bytes_of(::getpid());
  ASSERT_GT(before, 1u << 20);
  const std::vector<char> block(before + (64 << 20), 1);  // more than it ever had
  EXPECT_GE(train::bench::resident_bytes_of(::getpid()), block.size());
}

}  // namespace
}  // namespace gradring::tests
