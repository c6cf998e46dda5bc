// SPDX-License-Identifier: Apache-2.0
// --val-split, by the program that was built.
#include <gmock/gmock.h>

#include "tests/train/cli/support/run_directories.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using tests::joined;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;

class ValSplit : public tests::RunDirectories {
 protected:
  std::vector<json> evals() const {
    std::vector<json> found;
    for (const std::string& line : tests::records_of(run() / "metrics.jsonl"))
      if (const json record = tests::parse_json(line); record["event"] == "eval") found.push_back(record);
    return found;
  }
};

TEST_F(ValSplit, EvaluatesTheTestSetOnceAtTheEnd) {
  const ProgramEnd end = place_.run(short_training({"--val-split", "0.25", "--steps", "12", "--progress", "plain"}));
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("mnist: 48 training, 16 validation, 32 test samples"));
  EXPECT_THAT(end.out, HasSubstr("Epoch 1: validation accuracy"));
  EXPECT_THAT(end.out, HasSubstr("Epoch 2: test accuracy"));
  const auto all = evals();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["split"], "validation");
  EXPECT_EQ(all[1]["split"], "validation");
  EXPECT_FALSE(all[2].contains("split")) << "test is the default";
  EXPECT_EQ(all[1]["samples"], 16);
  EXPECT_EQ(all[2]["samples"], 32);
  const json summary = summary_in(run());
  EXPECT_EQ(summary["accuracy"], all[2]["accuracy"]);
  EXPECT_EQ(summary["validation_accuracy"], all[1]["accuracy"]);
}

TEST_F(ValSplit, HoldsInAResumeAndIsRefusedIfItChanges) {
  ASSERT_EQ(place_.run(short_training({"--val-split", "16", "--steps", "6"})).code, 0);
  const auto resumed = [&](const Words& more) {
    return place_.run(joined(short_training({"--resume", "auto", "--steps", "18"}), more));
  };
  for (const Words& other : {Words{}, {"--val-split", "8"}, {"--val-split", "16", "--seed", "7"}}) {
    const ProgramEnd refused = resumed(other);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("was trained with 16 validation samples by seed"));
  }
  const ProgramEnd end = resumed({"--val-split", "0.25"});
  EXPECT_EQ(end.code, 0) << end.err << "the same samples";
  EXPECT_EQ(summary_in(run())["steps"], 18);
}

TEST_F(ValSplit, CountsForThePlanToo) {
  const auto planned = [&](const Words& more) {
    const ProgramEnd end = place_.run(joined({"plan", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8",
                                              "--resident", "on", "-J", "plan.json"},
                                             more));
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(tests::text_of(place_.path("plan.json")))["planned_bytes"]["batches"].get<int>();
  };
  EXPECT_EQ(planned({}) - planned({"--val-split", "24"}), 24 * (28 * 28 + 12)) << "bytes of resident samples";
}

TEST_F(ValSplit, MustLeaveSomethingToTrainOn) {
  for (const char* bad : {"64", "1.0", "0.001", "-1", "x"}) {
    const ProgramEnd end = place_.run(short_training({"--val-split", bad}));
    EXPECT_EQ(end.code, 2) << bad;
    EXPECT_THAT(end.err, HasSubstr("--val-split")) << bad;
  }
  const ProgramEnd end = place_.run(short_training({"--val-split", "60"}));
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("--batch-size is 8, but mnist has 4 training samples without those of --val-split"));
}

}  // namespace
}  // namespace gradring
