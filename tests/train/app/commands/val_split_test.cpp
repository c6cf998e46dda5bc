// SPDX-License-Identifier: Apache-2.0
// --val-split, by the program that was built.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/data/support/written_idx.h"
#include "tests/train/app/commands/support/run_directories.h"

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

TEST_F(ValSplit, HoldsInAResumeAndIsRejectedIfItChanges) {
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

/// Evaluations by the training judge those by gradring eval: another order of samples, or another part of them, has
/// another loss.
TEST_F(ValSplit, IsEvaluatedLaterOnTheSameSamples) {
  const Words split = {"--val-split",  "0.25", "--seed", "7",    "--steps",     "18",
                       "--eval-every", "4",    "--lr",   "0.01", "--keep-last", "0"};
  ASSERT_EQ(place_.run(short_training(split)).code, 0);
  std::map<int, json> recorded;
  for (const json& eval : evals())
    if (eval.contains("split")) recorded[eval["step"]] = eval;
  std::vector<int> steps;
  for (const auto& [step, eval] : recorded) steps.push_back(step);
  EXPECT_THAT(steps, testing::ElementsAre(4, 6, 8, 12, 16, 18)) << "validation within and at the end of epochs";

  const auto evaluated = [&](const Words& words) {
    const ProgramEnd end = place_.run(joined({"eval", "--split", "validation", "--device", "cpu", "--json"}, words));
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(end.out);
  };
  for (const int step : {6, 12, 18}) {
    SCOPED_TRACE(step);
    const json now = evaluated({"run/checkpoints/step-" + std::to_string(step)});
    EXPECT_EQ(now["split"], "validation");
    EXPECT_EQ(now["samples"], 16);
    EXPECT_EQ(now["accuracy"], recorded[step]["accuracy"]);
    EXPECT_EQ(now["recorded_accuracy"], recorded[step]["accuracy"]);
    EXPECT_NEAR(now["loss"].get<double>(), recorded[step]["loss"].get<double>(), 1e-6);
  }
  const json best = evaluated({"run", "--best"});
  EXPECT_EQ(best["accuracy"], std::max({recorded[6]["accuracy"].get<double>(), recorded[12]["accuracy"].get<double>(),
                                        recorded[18]["accuracy"].get<double>()}));
  const json test = tests::parse_json(place_.run({"eval", "run", "--json"}).out);
  EXPECT_EQ(test["split"], "test");
  EXPECT_FALSE(test.contains("recorded_accuracy")) << "the test set selects nothing";
}

TEST_F(ValSplit, CanOnlyBeEvaluatedWhereItIsKnown) {
  ASSERT_EQ(place_.run(short_training({"--val-split", "16"})).code, 0);
  ASSERT_EQ(place_.run(short_training({"--run-dir", "whole"})).code, 0);
  ASSERT_EQ(place_.run({"export", "run", "--output", "w.safetensors"}).code, 0);
  const std::pair<Words, const char*> refused[] = {
      {{"whole"}, "was trained without --val-split, so it has no validation set"},
      {{"w.safetensors", "--dataset", "mnist", "--data-dir", "data"}, "does not say which samples were held out"},
      {{"run", "--dataset", "digits"}, "--dataset is digits, but the validation set is a part of mnist"}};
  for (const auto& [words, message] : refused) {
    const ProgramEnd end = place_.run(joined({"eval", "--split", "validation"}, words));
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_THAT(end.err, HasSubstr(message));
  }
  const std::filesystem::path data = "data";
  place_.folder().write(data / tests::kTrainImages, tests::idx_bytes({63, 28, 28}, tests::counting(63 * 28 * 28)));
  place_.folder().write(data / tests::kTrainLabels, tests::idx_bytes({63}, tests::Bytes(63)));
  const ProgramEnd other = place_.run({"eval", "run", "--split", "validation"});
  EXPECT_EQ(other.code, 4) << other.err;
  EXPECT_THAT(other.err, HasSubstr("mnist has 63 training samples, but the training had 64, of which it held out 16"));
  EXPECT_EQ(place_.run({"eval", "run", "--split", "val"}).code, 2);
}

TEST_F(ValSplit, CountsForThePlanToo) {
  const auto planned = [&](const Words& more) {
    const ProgramEnd end = place_.run(joined({"plan", "--dataset", "mnist", "--data-dir", "data", "--batch-size", "8",
                                              "--resident", "on", "-J", "plan.json"},
                                             more));
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::parse_json(tests::text_of(place_.path("plan.json")))["planned_bytes"]["batches"].get<int>();
  };
  EXPECT_EQ(planned({"--val-split", "16"}), planned({"--val-split", "24"}))
      << "a resident sample that is held out moves from the training to its evaluation";
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
