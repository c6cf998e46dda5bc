// SPDX-License-Identifier: Apache-2.0
// Runs that are killed or that cannot save, and go on in their run directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <random>
#include <thread>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

class ResumedRun : public ::testing::Test {
 protected:
  /// The metrics of a run without what differs from run to run: times.
  std::vector<json> metrics_of(const std::string& run) const {
    std::vector<json> metrics;
    for (const std::string& line : tests::records_of(place_.path(run + "/metrics.jsonl"))) {
      metrics.push_back(tests::parse_json(line));
      for (const char* time : {"time", "samples_per_second", "seconds", "data_wait", "forward", "backward", "optimizer",
                               "exposed_communication"})
        metrics.back().erase(time);
    }
    return metrics;
  }
  bool is_finished(const std::string& run) const {
    const json summary = tests::try_parse_json(tests::text_of(place_.path(run + "/summary.json")));
    return summary.is_object() && summary.value("outcome", "") == "finished";
  }
  json weights_of(const std::string& run) const {
    return tests::parse_json(tests::text_of(place_.path(run + "/summary.json"))).at("parameters_sha256");
  }

  Workplace place_;
};

TEST_F(ResumedRun, GoesOnBehindItsNewestCheckpointAfterItWasKilled) {
  const auto training = [](const std::string& run) {
    return short_training({"--run-dir", run, "--steps", "60", "--epochs", "20", "--nprocs", "2", "--save-every-steps",
                           "3", "--resume", "auto"});
  };
  ASSERT_EQ(place_.run(training("whole")).code, 0);
  {
    tests::RunningProgram killed(place_.gradring(training("run")));
    while (!std::filesystem::exists(place_.path("run/checkpoints/step-6"))) std::this_thread::yield();
    ::kill(killed.pid(), SIGKILL);
    killed.wait();
  }
  EXPECT_FALSE(std::filesystem::exists(place_.path("run/summary.json")));
  const ProgramEnd end = place_.run(training("run"));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(tests::text_of(place_.path("run/logs/rank_1.log")), HasSubstr("resumes after step "));
  EXPECT_EQ(weights_of("run"), weights_of("whole"));
  EXPECT_EQ(metrics_of("run"), metrics_of("whole"));
}

/// Neither `--resume auto` nor a rollback finds what another training saved behind the step at which this one turned off.
TEST_F(ResumedRun, InPlaceFromAnEarlierCheckpointLeavesTheLaterOnesBehind) {
  const auto run = [&](const Words& more) {
    const Words words = {"--run-dir", "run", "--epochs", "20", "--save-every-steps", "3", "--keep-last", "0"};
    const ProgramEnd end = place_.run(short_training(tests::joined(words, more)));
    EXPECT_EQ(end.code, 0) << end.err;
  };
  run({"--steps", "15"});
  run({"--resume", "run/checkpoints/step-6", "--steps", "10", "--lr", "0.002", "--on-nan", "rollback", "--inject",
       "nan:rank=0,step=8"});
  EXPECT_EQ(tests::parse_json(tests::text_of(place_.path("run/summary.json"))).at("steps"), 10);
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/abandoned-step-15")));
  run({"--resume", "auto", "--steps", "12"});
  std::int64_t step = 0;
  for (const json& line : metrics_of("run"))
    if (line.at("event") == "train") {
      EXPECT_EQ(line.at("step"), ++step);
    }
  EXPECT_EQ(step, 12);
}

TEST_F(ResumedRun, GoesOnAfterARequestInTheLastStepOfAnEpoch) {
  const auto training = [](const std::string& run, const Words& more) {  // 3 steps an epoch
    return short_training(tests::joined({"--run-dir", run, "--steps", "8", "--epochs", "100", "--reproducible",
                                         "--global-batch", "24", "--save-every-steps", "2", "--resume", "auto"},
                                        more));
  };
  ASSERT_EQ(place_.run(training("whole", {})).code, 0);
  tests::RunningProgram asked(place_.gradring(training("run", {"--inject", "delay:rank=0,step=3,ms=2000"})));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!std::filesystem::exists(place_.path("run/checkpoints/step-2")) && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(asked.pid(), SIGTERM);
  EXPECT_EQ(asked.wait().code, 143);
  const ProgramEnd end = place_.run(training("run", {}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_EQ(weights_of("run"), weights_of("whole"));
}

TEST_F(ResumedRun, StopsBehindACheckpointOfOneStepWhereItIsAskedTo) {
  const auto training = [](const std::string& run) {
    return short_training({"--run-dir", run, "--steps", "300", "--epochs", "100", "--nprocs", "2", "--resume", "auto"});
  };
  ASSERT_EQ(place_.run(training("whole")).code, 0);
  std::mt19937 random(11);
  int code = 143;
  for (int stops = 0; code == 143 && stops < 40; ++stops) {
    tests::RunningProgram asked(place_.gradring(training("run")));
    const auto written = [this] {
      std::error_code none_yet;
      const auto bytes = std::filesystem::file_size(place_.path("run/metrics.jsonl"), none_yet);
      return none_yet ? 0 : bytes;
    };
    const auto before = written();
    const std::uintmax_t enough = before + 4000 + random() % 20000;  // behind the header: training has begun
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (written() < enough && std::chrono::steady_clock::now() < patience && ::kill(asked.pid(), 0) == 0 &&
           !is_finished("run"))
      std::this_thread::yield();
    ::kill(asked.pid(), stops % 2 == 0 ? SIGTERM : SIGUSR1);
    const ProgramEnd end = asked.wait();
    code = end.code;
    if (code != 143 || is_finished("run")) break;  // the request may come after the last step
    EXPECT_THAT(end.err, HasSubstr("stopped by request after step "));
    const auto lines = tests::records_of(place_.path("run/metrics.jsonl"));
    const auto last = tests::parse_json(lines.back()).value("step", 0);
    EXPECT_EQ(std::filesystem::read_symlink(place_.path("run/checkpoints/latest")), "step-" + std::to_string(last));
  }
  EXPECT_EQ(place_.run(training("run")).code, 0);
  EXPECT_EQ(weights_of("run"), weights_of("whole"));
  EXPECT_EQ(metrics_of("run"), metrics_of("whole"));
}

TEST_F(ResumedRun, SavesAndGoesOnAndSaysWhereItIsIfItIsAskedTo) {
  tests::RunningProgram asked(place_.gradring(short_training({"--dataset", "digits", "--steps", "400"})));
  const auto metrics = place_.path("run/metrics.jsonl");
  while (!std::filesystem::exists(metrics) || tests::records_of(metrics).empty()) std::this_thread::yield();
  ::kill(asked.pid(), SIGUSR2);
  ::kill(asked.pid(), SIGQUIT);
  const ProgramEnd end = asked.wait();
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err,
              ::testing::ContainsRegex("rank 0 of 1, process [0-9]+: [a-z]+ after step [0-9]+, in epoch [0-9]"));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(place_.path("run/checkpoints")))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("best", "latest", "step-400", ::testing::StartsWith("step-")));
}

TEST_F(ResumedRun, SavesIfItsLauncherGetsSigquitOrCtrlCAfterSigterm) {
  const std::vector<int> cases[] = {{SIGQUIT}, {SIGTERM, SIGINT}, {SIGHUP, SIGINT}};
  for (const auto& signals : cases) {
    SCOPED_TRACE(::testing::PrintToString(signals));
    tests::RunningProgram asked(
        place_.gradring(short_training({"--dataset", "digits", "--steps", "100000", "--nprocs", "2"})));
    const auto metrics = place_.path("run/metrics.jsonl");
    while (!std::filesystem::exists(metrics) || tests::records_of(metrics).empty()) std::this_thread::yield();
    for (const int signal : signals) {
      ::kill(asked.pid(), signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const int code = asked.wait().code;
    if (signals[0] == SIGQUIT)
      EXPECT_EQ(code, 131);
    else
      EXPECT_THAT(code, AnyOf(143, 130)) << "130 if the launcher sees SIGINT first";
    EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/latest")));
    EXPECT_EQ(json::parse(tests::text_of(place_.path("run/summary.json"))).at("outcome"), "interrupted");
    std::filesystem::remove_all(place_.path("run"));
  }
}

TEST_F(ResumedRun, TrainsOnIfACheckpointCannotBeSavedAndFailsIfItIsTheLast) {
  const auto steps = [](const std::string& count) {
    return short_training({"--steps", count, "--save-every-steps", "1", "--resume", "auto"});
  };
  ASSERT_EQ(place_.run(steps("1")).code, 0);
  std::ofstream(place_.path("run/checkpoints/step-2.partial")) << "in the way";
  const ProgramEnd end = place_.run(steps("3"));
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("the checkpoint of step 2 could not be saved: cannot "), HasSubstr("step-2.partial")));
  EXPECT_FALSE(std::filesystem::exists(place_.path("run/checkpoints/step-2")));
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-3")));

  std::ofstream(place_.path("run/checkpoints/step-4.partial")) << "in the way";
  const ProgramEnd last = place_.run(steps("4"));
  EXPECT_EQ(last.code, 3);
  EXPECT_THAT(last.err, HasSubstr("gradring train: the last checkpoint could not be saved: cannot create the folder"));
  EXPECT_EQ(metrics_of("run").size(), 5u) << "four steps and the test, though they were not saved";
}

TEST_F(ResumedRun, EndsAfterTwoCheckpointsThatCannotBeSavedUnlessToldToContinue) {
  const auto train = [&](const char* on_save_error) {
    return place_.run(short_training(
        {"--steps", "6", "--save-every-steps", "1", "--resume", "auto", "--on-save-error", on_save_error}));
  };
  ASSERT_EQ(place_.run(short_training({"--steps", "1"})).code, 0);
  for (const char* name : {"step-2.partial", "step-3.partial"})
    std::ofstream(place_.path("run/checkpoints") / name) << "in the way";
  const ProgramEnd end = train("stop");
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, AllOf(HasSubstr("the checkpoint of step 3 could not be saved: cannot "),
                             HasSubstr("gradring train: two checkpoints in a row could not be saved: free space")));
  EXPECT_EQ(train("continue").code, 0);
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-6")));
}

TEST_F(ResumedRun, RejectsADamagedCheckpointThatWasNamedAndPassesOverOneThatWasNot) {
  ASSERT_EQ(place_.run(short_training({"--save-every-steps", "1"})).code, 0);
  std::filesystem::resize_file(place_.path("run/checkpoints/step-2/state.safetensors"), 100);
  const ProgramEnd named = place_.run(short_training({"--run-dir", "again", "--resume", "run/checkpoints/step-2"}));
  EXPECT_EQ(named.code, 4);
  EXPECT_THAT(named.err, HasSubstr("step-2/state.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(place_.path("again")));

  const json weights = weights_of("run");
  const ProgramEnd newest = place_.run(short_training({"--resume", "auto"}));
  EXPECT_EQ(newest.code, 0);
  EXPECT_THAT(newest.err, AllOf(HasSubstr("passed over"), HasSubstr("step-2")));
  EXPECT_EQ(weights_of("run"), weights) << "from step 1 to step 2 once more";
}

TEST_F(ResumedRun, OfAnotherOptimizerIsRejectedOnceForAllRanks) {
  ASSERT_EQ(place_.run(short_training()).code, 0);
  const ProgramEnd end = place_.run(
      short_training({"--optimizer", "sgd", "--steps", "4", "--resume", "run", "--run-dir", "other", "--nprocs", "2"}));
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(HasSubstr("exp_avg."), HasSubstr("--optimizer")));
  EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
  EXPECT_FALSE(std::filesystem::exists(place_.path("other")));
}

}  // namespace
}  // namespace gradring
