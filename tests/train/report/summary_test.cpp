// SPDX-License-Identifier: Apache-2.0
#include "train/report/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gradring::train {
namespace {

using nlohmann::json;

TEST(UnfinishedRun, SaysHowFarItCameAndWhyItEnded) {
  const UnfinishedRun run{.outcome = Outcome::diverged,
                          .reason = "the loss is \"no number\"\xff",
                          .steps = 7,
                          .epoch = 1,
                          .seconds = 0.25,
                          .samples_per_second = 100,
                          .world_size = 2,
                          .device = "cpu",
                          .backend = "cpu",
                          .precision = "fp32"};
  json written = json::parse(run.to_json());
  EXPECT_EQ(written.at("reason").get<std::string>().substr(0, 23), "the loss is \"no number\"");
  written.erase("reason");
  EXPECT_EQ(written, json::parse(R"({"outcome": "diverged", "steps": 7, "epoch": 1, "seconds": 0.25,
      "samples_per_second": 100.0, "world_size": 2, "device": "cpu", "backend": "cpu", "precision": "fp32"})"));
}

TEST(UnfinishedRun, IsNoSummaryOfAFinishedOne) {
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
