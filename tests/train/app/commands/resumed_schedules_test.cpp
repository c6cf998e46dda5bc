// SPDX-License-Identifier: Apache-2.0
// Resumes with another learning rate, and of checkpoints whose counters contradict each other, by the program that was
// built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/support/sealed_meta.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::joined;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;

/// The command that a finished run suggests to train longer.
std::string suggested_in(const std::string& out) {
  const std::string label = "\ntrain longer   ";
  const auto begin = out.find(label);
  if (begin == std::string::npos) return {};
  return out.substr(begin + label.size(), out.find('\n', begin + 1) - begin - label.size());
}

class ResumedSchedules : public tests::RunDirectories {
 protected:
  ProgramEnd train(const Words& more) const {
    return place_.run(joined(short_training({"--progress", "plain", "--epochs", "0", "--steps", "10"}), more));
  }
  /// The learning rates of all steps in a run directory.
  std::vector<double> rates_in(const std::string& run) const {
    std::vector<double> rates;
    for (const std::string& line : tests::records_of(place_.path(run + "/metrics.jsonl")))
      if (const json record = tests::parse_json(line); record.at("event") == "train")
        rates.push_back(record.at("lr").get<double>());
    return rates;
  }
};

TEST_F(ResumedSchedules, OfTwiceTheStepsSayBothRates) {
  ASSERT_EQ(train({"--schedule", "cosine"}).code, 0);
  const ProgramEnd same = train({"--schedule", "cosine", "--resume", "run", "--run-dir", "same"});
  EXPECT_THAT(same.out, AllOf(HasSubstr("the training is already complete at step 10: nothing is trained; to train "
                                        "longer, start a new run with more --epochs or --steps"),
                              Not(HasSubstr("the learning rate was"))));
  const ProgramEnd longer = train({"--schedule", "cosine", "--steps", "20", "--resume", "auto"});
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr("the learning rate was 2.4e-05 in step 10 and is 5.0e-04 in step 11: the cosine "
                                    "schedule spans 20 steps instead of 10; --schedule constant --lr 2.45e-05 would "
                                    "keep it\n"));
  const std::vector<double> rates = rates_in("run");
  ASSERT_EQ(rates.size(), 20u);
  EXPECT_NEAR(rates[9], 2.4e-05, 1e-6);
  EXPECT_NEAR(rates[10], 5.0e-04, 1e-6);
}

TEST_F(ResumedSchedules, OfAnotherRateOnSeveralRanksSayBothRates) {
  ASSERT_EQ(train({"--nprocs", "2"}).code, 0);
  const ProgramEnd end = train({"--nprocs", "2", "--steps", "12", "--lr", "0.004", "--resume", "auto"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("the learning rate was 1.0e-03 in step 10 and is 4.0e-03 in step 11: --lr is 0.004 "
                                 "instead of 0.001\n"));
}

TEST_F(ResumedSchedules, OfMoreStepsAtAConstantRateSayNothing) {
  ASSERT_EQ(train({}).code, 0);
  const ProgramEnd end = train({"--steps", "12", "--resume", "auto"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, Not(HasSubstr("the learning rate was")));
}

/// The command that a finished run suggests to train longer does not make the learning rate jump.
TEST_F(ResumedSchedules, AreSmoothIfARunIsTrainedLongerAsItSuggests) {
  const std::pair<const char*, const char*> cases[] = {{"constant", "run"}, {"cosine", "run-20-steps"}};
  for (const auto& [schedule, longer] : cases) {
    SCOPED_TRACE(schedule);
    const ProgramEnd first = train({"--schedule", schedule});
    ASSERT_EQ(first.code, 0) << first.err;
    const std::string command = suggested_in(first.out);
    ASSERT_NE(command, "") << first.out;
    const ProgramEnd second = tests::run_program(tests::in_shell(place_.gradring({}), command));
    ASSERT_EQ(second.code, 0) << command << second.err;
    EXPECT_THAT(second.out, Not(HasSubstr("the learning rate was")));
    const std::vector<double> rates = rates_in(longer);
    ASSERT_EQ(rates.size(), 20u);
    for (std::size_t i = 1; i < rates.size(); ++i) EXPECT_LE(rates[i], rates[i - 1]) << "step " << i + 1;
    fs::remove_all(run());
  }
}

/// At a learning rate that changes nothing, no epoch is better than the first.
TEST_F(ResumedSchedules, GoOnAfterAnEarlyStopAsTheRunSuggests) {
  const Words stopping = {"--steps", "0",     "--epochs",    "5",    "--optimizer",  "sgd",
                          "--lr",    "1e-30", "--val-split", "0.25", "--early-stop", "1"};
  const ProgramEnd first = train(stopping);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(summary_in(run()).at("steps"), 12);
  const ProgramEnd longer = train(joined(stopping, {"--epochs", "9", "--resume", "auto"}));
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.out, AllOf(HasSubstr("nothing was trained; --early-stop 1 has ended it"),
                                HasSubstr("resume with a larger --early-stop, or with 0"), Not(HasSubstr("raise"))));
  const ProgramEnd second = tests::run_program(tests::in_shell(place_.gradring({}), suggested_in(first.out)));
  ASSERT_EQ(second.code, 0) << suggested_in(first.out) << second.err;
  EXPECT_EQ(summary_in(run()).at("steps"), 30) << "all epochs";
}

class ContradictoryCheckpoint : public ResumedSchedules {
 protected:
  void SetUp() override {
    ASSERT_EQ(train({}).code, 0);
    whole_ = tests::text_of(meta());
  }
  fs::path meta() const { return step_folder(10) / "meta.json"; }
  /// Overwrites a value of meta.json, with a correct checksum.
  void forge(const char* pointer, const nlohmann::ordered_json& value) {
    const std::string text = tests::forged(
        whole_, [&](auto& json) { json["about"][nlohmann::ordered_json::json_pointer(pointer)] = value; });
    place_.folder().write("run/checkpoints/step-10/meta.json", tests::Bytes(text.begin(), text.end()));
  }

  std::string whole_;
};

TEST_F(ContradictoryCheckpoint, IsRejectedWithItsFileAndValue) {
  const struct {
    const char* pointer;
    std::int64_t value;
  } cases[] = {{"/progress/steps", 7},           {"/progress/epoch", 1'000'000'000}, {"/progress/position", 48'000},
               {"/progress/position", -8},       {"/progress/samples", 3},           {"/step_state/applied_steps", 11},
               {"/step_state/applied_steps", 0}, {"/step_state/skipped_steps", 11},  {"/samples_of_step", -1}};
  const std::string metrics = tests::text_of(run() / "metrics.jsonl");
  for (const auto& [pointer, value] : cases) {
    SCOPED_TRACE(pointer);
    forge(pointer, value);
    const ProgramEnd end = train({"--steps", "12", "--resume", "auto"});
    EXPECT_EQ(end.code, 4) << end.err;
    const std::string field = fs::path(pointer).filename();
    EXPECT_THAT(end.err, AllOf(HasSubstr("step-10/meta.json has '"), HasSubstr(field), HasSubstr(std::to_string(value)),
                               HasSubstr("expected")));
    EXPECT_EQ(tests::text_of(run() / "metrics.jsonl"), metrics);
  }
}

TEST_F(ContradictoryCheckpoint, IsRejectedOnceForAllRanks) {
  forge("/progress/epoch", 1'000'000'000);
  const ProgramEnd end = train({"--steps", "12", "--batch-size", "4", "--nprocs", "2", "--resume", "auto"});
  EXPECT_EQ(end.code, 4) << end.err;
  EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
}

TEST_F(ContradictoryCheckpoint, IsFoundByVerify) {
  EXPECT_EQ(place_.run({"ckpt", "verify", "run"}).code, 0);
  forge("/step_state/applied_steps", 11);
  const ProgramEnd end = place_.run({"ckpt", "verify", "run"});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.out, HasSubstr("step-10/meta.json has 'step_state.applied_steps' = 11, expected 10"));
}

}  // namespace
}  // namespace gradring
