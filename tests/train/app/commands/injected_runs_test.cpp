// SPDX-License-Identifier: Apache-2.0
// Runs with faults that they were asked to have: what each kind comes to, and that a restart recovers from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

/// Ten steps on two ranks; ranks that are missed are noticed soon.
ProgramEnd train(const Workplace& place, const Words& more, const Words& launch = {}) {
  const Words training = tests::short_training({"--steps", "10", "--timeout", "3s"});
  return place.run(joined(joined({"launch", "--nproc-per-node", "2"}, launch), joined(training, more)));
}

std::string weights_of(const Workplace& place) {
  const json summary = tests::try_parse_json(tests::text_of(place.path("run/summary.json")));
  return summary.is_object() ? summary.at("parameters_sha256") : "no summary";
}

TEST(InjectedRun, EndsAsTheFaultSays) {
  struct Case {
    std::string fault;
    int code;
    std::string said;
  };
  const Case cases[] = {
      {"kill:rank=1,step=5", 137, "rank 1 of 2"},
      {"kill:rank=0,step=1", 137, "rank 0 of 2"},
      {"exit:rank=1,step=5,code=9", 9, "exited with code 9"},
      {"stop:rank=1,step=5", 162, "rank 1"},
      {"nan:rank=1,step=5", 5, "the gradients of step 5 are not finite"},
      {"nan:rank=1,step=10", 5, "the gradients of step 10 are not finite"},
  };
  for (const auto& [fault, code, said] : cases) {
    SCOPED_TRACE(fault);
    const Workplace place;
    const ProgramEnd end = train(place, {"--inject", fault});
    EXPECT_EQ(end.code, code) << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr("gradring train: --inject: planned: "), HasSubstr(said)));
    EXPECT_THAT(place.left(), testing::ElementsAre("run"));
  }
}

TEST(InjectedRun, WithANanIsStoppedInItsStepWhereGradientsAreSearched) {
  const Workplace place;
  const ProgramEnd end = train(place, {"--inject", "nan:rank=0,step=5", "--clip-norm", "1"});
  EXPECT_EQ(end.code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("the gradients of step 5 are not finite"));
}

TEST(InjectedRun, WithADelayOnlyTakesLonger) {
  const Workplace whole, delayed;
  ASSERT_EQ(train(whole, {}).code, 0);
  const ProgramEnd end = train(delayed, {"--inject", "delay:rank=any,step=2..9,ms=50,seed=5"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err, AllOf(HasSubstr("delay of 50 ms, rank "), HasSubstr("(seed 5)")));
  EXPECT_EQ(weights_of(delayed), weights_of(whole));
}

TEST(InjectedRun, SaysWhatDidNotHappen) {
  const Workplace place;
  const ProgramEnd end = train(place, {"--inject", "kill:rank=1,step=11"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err,
              HasSubstr("did not happen, because this process did not reach that step: kill, rank 1 in step 11"));
}

TEST(InjectedRun, GoesOnAfterRestartsToTheSameWeights) {
  const Workplace whole, faulty;
  const Words saving = {"--save-every-steps", "2", "--resume", "auto"};
  ASSERT_EQ(train(whole, saving).code, 0);
  const Words faults = {"--inject", "kill:rank=1,step=4",          "--inject", "exit:rank=0,step=6,code=7,attempt=1",
                        "--inject", "stop:rank=1,step=8,attempt=2"};
  const ProgramEnd end = train(faulty, joined(saving, faults), {"--max-restarts", "3"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("restart 3 of 3"), HasSubstr("killed by signal 9"), HasSubstr("code 7")));
  EXPECT_EQ(weights_of(faulty), weights_of(whole));
}

/// The first kill comes before the run has a checkpoint of its own, the second after.
TEST(InjectedRun, RestartsFromTheCheckpointOfAnotherRun) {
  const Workplace whole, faulty;
  for (const Workplace* place : {&whole, &faulty})
    ASSERT_EQ(place->run(tests::short_training({"--run-dir", "first", "--steps", "3"})).code, 0);
  const Words resuming = {
      "--resume", "first/checkpoints/step-3", "--global-batch", "8", "--batch-size", "4", "--save-every-steps", "6"};
  const ProgramEnd expected = train(whole, resuming);
  ASSERT_EQ(expected.code, 0) << expected.err;
  const ProgramEnd end =
      train(faulty, joined(resuming, {"--inject", "kill:rank=0,step=5", "--inject", "kill:rank=0,step=8,attempt=1"}),
            {"--max-restarts", "2"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("restart 2 of 2"));
  EXPECT_EQ(weights_of(faulty), weights_of(whole));
}

TEST(InjectedRun, GoesBackToItsCheckpointAndOnToTheSameWeights) {
  const Workplace whole, faulty;
  const Words saving = {"--save-every-steps", "2", "--on-nan", "rollback"};
  ASSERT_EQ(train(whole, saving).code, 0);
  const ProgramEnd end = train(faulty, joined(saving, {"--inject", "nan:rank=1,step=6"}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(weights_of(faulty), weights_of(whole));
}

TEST(InjectedRun, IsRejectedWhereItCannotBe) {
  const Workplace place;
  const ProgramEnd none = train(place, {"--inject", "kill:rank=2,step=5"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--inject names rank 2, expected 0 to 1"));
  EXPECT_EQ(tests::reasons_in(none.err), 1) << none.err;
  EXPECT_THAT(place.left(), testing::IsEmpty());
}

}  // namespace
}  // namespace gradring
