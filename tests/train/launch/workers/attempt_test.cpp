// SPDX-License-Identifier: Apache-2.0
// The policy of the launcher, without processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/launch/scripted_workers.h"
#include "train/launch/workers/attempt.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Script = ScriptedWorkers::Script;
using std::chrono::milliseconds;

WorkerEvents ends(int rank, int code) { return {.exits = {{.rank = rank, .code = code}}}; }
WorkerEvents comes(int signal) { return {.signal = signal}; }
WorkerEvents ends_as_told(int rank, int signal) {
  WorkerExit exit{.rank = rank, .signal = signal};
  exit.sent.set(static_cast<std::size_t>(signal));
  return {.exits = {exit}};
}
WorkerEvents leaves_after(int rank, int signal, int code) {
  WorkerEvents events = ends(rank, code);
  events.exits.front().sent.set(static_cast<std::size_t>(signal));
  return events;
}
const Script kWell = {ends(0, 0), ends(1, 0)};
Script fails_with(int code) { return {ends(1, code), ends_as_told(0, SIGTERM)}; }

struct Outcome {
  int code;
  std::vector<std::string> said;
};

Outcome run(ScriptedWorkers& workers, RestartOptions restarts = {}) {
  restarts.first_backoff = restarts.longest_backoff = {};
  const LaunchOptions options{.program = "p", .nproc_per_node = 2, .restarts = restarts, .kill_grace = {}};
  std::vector<std::string> said;
  const int code = run_attempts(options, workers, [&](const std::string& line) { said.push_back(line); });
  return {code, said};
}

TEST(RunAttempts, EndsAfterASuccessfulAttempt) {
  ScriptedWorkers workers({kWell});
  const auto [code, said] = run(workers, {.most = 3});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(said, IsEmpty());
  EXPECT_THAT(workers.calls, ElementsAre("start 0"));
}

TEST(RunAttempts, StopsAndRestartsAllAfterAFailure) {
  ScriptedWorkers workers({fails_with(7), kWell});
  const auto [code, said] = run(workers, {.most = 3});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(workers.calls, ElementsAre("start 0", "send 15", "send 9", "start 1"));  // kill_grace is 0
  EXPECT_THAT(said, ElementsAre(HasSubstr("did not end within"), HasSubstr("exited with code 7, the first to fail"),
                                "restarting all workers: restart 1 of 3"));
}

TEST(RunAttempts, ReturnsTheCodeOfTheLastAttempt) {
  ScriptedWorkers workers({fails_with(7), fails_with(8), fails_with(9)});
  const auto [code, said] = run(workers, {.most = 2});
  EXPECT_EQ(code, 9);
  EXPECT_THAT(said, ::testing::Contains("not restarting: all 2 restarts are used up"));
  EXPECT_THAT(said.back(), HasSubstr("code 9"));
}

TEST(RunAttempts, EndsCrashLoopsEarly) {
  ScriptedWorkers workers({fails_with(7), fails_with(7), fails_with(7), fails_with(7), fails_with(7)});
  workers.step = 12;
  EXPECT_EQ(run(workers, {.most = 100}).code, 7);
  EXPECT_EQ(std::ranges::count(workers.calls, "start 4"), 0);
}

TEST(RunAttempts, DoesNotRestartAfterAnInterruption) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ScriptedWorkers workers({{comes(signal), ends_as_told(0, signal), ends_as_told(1, signal)}});
    EXPECT_EQ(run(workers, {.most = 3}).code, signal == SIGHUP ? 143 : 128 + signal);
  }
}

TEST(RunAttempts, StopsBySigtermOnSigquit) {
  ScriptedWorkers workers({{comes(SIGQUIT), ends_as_told(0, SIGTERM), ends_as_told(1, SIGTERM)}});
  EXPECT_EQ(run(workers).code, 131);
  EXPECT_THAT(workers.calls, ElementsAre("start 0", "send 15", "send 9"));  // kill_grace is 0
}

TEST(RunAttempts, KillsOnlyOnASecondSigint) {
  struct Case {
    std::vector<int> signals;
    bool kills;
  };
  const Case cases[] = {
      {{SIGINT, SIGINT}, true},   {{SIGTERM, SIGINT}, false},        {{SIGHUP, SIGINT}, false},
      {{SIGQUIT, SIGINT}, false}, {{SIGTERM, SIGINT, SIGINT}, true}, {{SIGINT, SIGTERM, SIGINT}, true},
      {{SIGINT, SIGQUIT}, false}, {{SIGQUIT, SIGQUIT}, false},       {{SIGTERM, SIGTERM, SIGINT}, false}};
  const LaunchOptions options{.program = "p", .nproc_per_node = 2};
  for (const auto& [signals, kills] : cases) {
    Script script;
    for (const int signal : signals) script.push_back(comes(signal));
    script.push_back(ends_as_told(0, SIGTERM));
    ScriptedWorkers workers({script});
    run_attempts(options, workers, [](const std::string&) {});
    EXPECT_EQ(std::ranges::count(workers.calls, "send 9"), kills ? 1 : 0) << ::testing::PrintToString(signals);
  }
}

TEST(RunAttempts, DoesNotKillOnTheFirstSigintAfterSigusr1) {
  ScriptedWorkers workers(
      {{comes(SIGUSR1), leaves_after(1, SIGUSR1, 143), comes(SIGINT), leaves_after(0, SIGUSR1, 143)}});
  const LaunchOptions options{.program = "p", .nproc_per_node = 2};
  EXPECT_EQ(run_attempts(options, workers, [](const std::string&) {}), 143);
  EXPECT_EQ(std::ranges::count(workers.calls, "send 9"), 0);
}

TEST(RunAttempts, DoesNotRestartAfterASignalDuringShutdown) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ScriptedWorkers workers({{ends(1, 7), comes(signal), ends_as_told(0, SIGTERM)}});
    const auto [code, said] = run(workers, {.most = 3});
    EXPECT_EQ(code, 7);
    EXPECT_THAT(said.back(), HasSubstr("exited with code 7, the first to fail"));
  }
}

TEST(RunAttempts, ReturnsPreemptedIfWorkersLeaveOnSigusr1) {
  ScriptedWorkers workers({{comes(SIGUSR1), leaves_after(1, SIGUSR1, 143), leaves_after(0, SIGUSR1, 143)}});
  const auto [code, said] = run(workers, {.most = 3});
  EXPECT_EQ(code, 143);
  EXPECT_EQ(workers.calls.at(1), "send 10");
  EXPECT_EQ(std::ranges::count(workers.calls, "send 15"), 0);  // they are leaving already
}

TEST(RunAttempts, EndsOnSigusr1IfHandled) {
  ScriptedWorkers workers({{comes(SIGUSR1), leaves_after(1, SIGUSR1, 0), leaves_after(0, SIGUSR1, 9)}, kWell});
  const LaunchOptions options{
      .program = "p", .nproc_per_node = 2, .restarts = {.most = 3}, .handled_signals = {SIGTERM, SIGUSR1}};
  EXPECT_EQ(run_attempts(options, workers, [](const std::string&) {}), 143);
  EXPECT_THAT(workers.calls, ElementsAre("start 0", "send 10"));
}

TEST(RunAttempts, ReportsOtherFailuresAfterSigusr1) {
  ScriptedWorkers workers({{comes(SIGUSR1), leaves_after(1, SIGUSR1, 7), leaves_after(0, SIGUSR1, 143)}});
  EXPECT_EQ(run(workers).code, 7);
}

TEST(RunAttempts, FailsIfAForwardedSignalKillsAWorker) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    ScriptedWorkers workers({{comes(signal), ends_as_told(1, signal), ends_as_told(0, SIGTERM)}});
    const auto [code, said] = run(workers);
    EXPECT_EQ(code, 128 + signal);
    EXPECT_THAT(said.back(), HasSubstr("rank 1"));
  }
}

TEST(RunAttempts, ReportsOtherFailuresAfterSighup) {
  WorkerEvents fails = leaves_after(0, SIGHUP, 1);
  fails.exits.front().message = "the disk is full";
  ScriptedWorkers workers({{comes(SIGHUP), leaves_after(1, SIGHUP, 143), fails}});
  const auto [code, said] = run(workers);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(said.back(), HasSubstr("rank 0"));
}

TEST(RunAttempts, ForwardsSigusr2AndSuspends) {
  ScriptedWorkers workers({{comes(SIGUSR2), comes(SIGTSTP), ends(0, 0), ends(1, 0)}});
  EXPECT_EQ(run(workers).code, 0);
  EXPECT_THAT(workers.calls, ElementsAre("start 0", "send 12", "suspend"));
}

TEST(RunAttempts, EndsOnASignalBetweenAttempts) {
  RestartOptions restarts{.most = 3, .first_backoff = std::chrono::hours(1), .longest_backoff = std::chrono::hours(1)};
  restarts.min_progress_steps = 0;
  const LaunchOptions options{.program = "p", .nproc_per_node = 2, .restarts = restarts, .kill_grace = {}};
  // The first restart is immediate.
  ScriptedWorkers twice({fails_with(7), fails_with(7)});
  twice.signals_between = {SIGUSR1, SIGTSTP, SIGTERM};
  std::string last;
  EXPECT_EQ(run_attempts(options, twice, [&](const std::string& line) { last = line; }), 128 + SIGTERM);
  EXPECT_EQ(last, "SIGTERM: not restarting");
  EXPECT_EQ(twice.calls.back(), "suspend");
}

TEST(RunAttempts, DoesNotRestartAMissingProgram) {
  ScriptedWorkers workers({{{.exits = {{.rank = 0, .code = 127, .exec_error = ENOENT}}}}});
  const auto [code, said] = run(workers, {.most = 3});
  EXPECT_EQ(code, 127);
  EXPECT_THAT(said, ElementsAre("cannot run 'p': No such file or directory"));
}

TEST(RunAttempts, RegroupingDoesNotCountAsARestart) {
  WorkerEvents changed{.regroup = true};
  ScriptedWorkers workers({{changed, ends_as_told(0, SIGTERM), ends(1, 143)}, {changed, ends(0, 1)}, kWell});
  const auto [code, said] = run(workers, {.most = 0});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(workers.calls, ::testing::Contains("send 15"));
  EXPECT_EQ(workers.calls.back(), "start 2");
  EXPECT_THAT(said.back(), HasSubstr("which does not count as a restart"));
}

/// The ranks of the lost node were asked to end, and the others ended with them.
const WorkerExit kEndedWithThem{.rank = 0, .code = 143};
const WorkerExit kAskedByTheirAgent = leaves_after(1, SIGTERM, 143).exits.front();

TEST(RunAttempts, RestartsAfterALostNodeThoughItsRanksWerePreempted) {
  const WorkerExit lost{.rank = 1, .code = 161, .message = "lost node 1"};
  const std::vector<Script> orders = {{{.exits = {kEndedWithThem, lost}}},
                                      {{.exits = {kEndedWithThem}}, {.exits = {lost}}},
                                      {{.exits = {lost}}, {.exits = {kAskedByTheirAgent, kEndedWithThem}}}};
  for (const Script& order : orders) {
    ScriptedWorkers workers({order, kWell});
    const auto [code, said] = run(workers, {.most = 1, .final_codes = {143}});
    EXPECT_EQ(code, 0) << testing::PrintToString(said);
    EXPECT_THAT(said, ::testing::Contains(HasSubstr("rank 1 of 2")));
  }
  ScriptedWorkers preempted({{{.exits = {kEndedWithThem}}}});
  EXPECT_EQ(run(preempted, {.most = 1, .final_codes = {143}}).code, 143) << "no node was lost";
}

TEST(RunAttempts, RegroupsAfterALostNodeThoughItsRanksWerePreempted) {
  const WorkerExit asked = leaves_after(1, SIGTERM, 33).exits.front();  // it may return any code
  for (const auto& exits : {std::vector{kEndedWithThem}, std::vector{kAskedByTheirAgent, kEndedWithThem},
                            std::vector{asked, kEndedWithThem}}) {
    ScriptedWorkers workers({{{.exits = exits, .regroup = true}}, kWell});
    EXPECT_EQ(run(workers, {.most = 0, .final_codes = {143}}).code, 0);
    EXPECT_EQ(workers.calls.back(), "start 1");
  }
}

TEST(RunAttempts, DoesNotRegroupAfterSuccess) {
  ScriptedWorkers workers({{{.exits = {{.rank = 0}, {.rank = 1}}, .regroup = true}}, kWell});
  EXPECT_EQ(run(workers, {.most = 3}).code, 0);
  EXPECT_THAT(workers.calls, ::testing::Not(::testing::Contains("start 1")));
}

TEST(RunAttempts, PrefersASignalToARegroup) {
  ScriptedWorkers workers({{{.regroup = true}, comes(SIGINT), ends_as_told(0, SIGTERM), ends_as_told(1, SIGINT)}});
  EXPECT_EQ(run(workers, {.most = 3}).code, 130);
}

TEST(RunAttempts, ReportsEveryFailureRootCauseFirst) {
  WorkerExit victim{.rank = 0, .code = 161, .message = "rank 1 is lost"};
  WorkerExit cause{.rank = 1, .code = 3, .message = "disk full"};
  WorkerExit stopped{.rank = 2, .code = 33};
  stopped.sent.set(SIGTERM);
  WorkerExit complaining{.rank = 3, .code = 1, .message = "cannot save"};
  complaining.sent.set(SIGTERM);
  ScriptedWorkers workers({{{.exits = {victim, cause}}, {.exits = {stopped, complaining}}}});
  const auto [code, said] = run(workers);
  EXPECT_EQ(code, 3);
  EXPECT_THAT(
      said, ElementsAre(HasSubstr("did not end"), EndsWith("code 3, the first to fail: disk full (rank 0 lost a peer)"),
                        AllOf(HasSubstr("then rank 3"), EndsWith("code 1: cannot save"))));
}

TEST(RunAttempts, ReportsEqualFailuresOnce) {
  const auto refuses = [](int rank) { return WorkerExit{.rank = rank, .code = 2, .message = "--lr is 'fast'"}; };
  ScriptedWorkers workers({{{.exits = {refuses(1), refuses(0)}}}});
  EXPECT_THAT(run(workers).said,
              ElementsAre(EndsWith("code 2, the first to fail: --lr is 'fast' (rank 0 failed alike)")));
}

constexpr int kFailed = 1;

TEST(RestartPolicy, DoesNotRestartByDefault) {
  RestartPolicy policy({});
  const auto next = policy.after_failure(kFailed, 100);
  EXPECT_FALSE(next.again);
  EXPECT_EQ(next.reason, "");
}

TEST(RestartPolicy, StopsAtMaxRestarts) {
  RestartPolicy policy({.most = 2});
  EXPECT_TRUE(policy.after_failure(kFailed, {}).again);
  EXPECT_TRUE(policy.after_failure(kFailed, {}).again);
  EXPECT_EQ(policy.restarts(), 2);
  const auto last = policy.after_failure(kFailed, {});
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.reason, "all 2 restarts are used up");
}

TEST(RestartPolicy, BacksOffWithoutProgress) {
  RestartPolicy policy({.most = 9, .first_backoff = milliseconds(100), .longest_backoff = milliseconds(350)});
  for (const int expected : {0, 100, 200, 350, 350})
    EXPECT_EQ(policy.after_failure(kFailed, {}).wait, milliseconds(expected));
}

TEST(RestartPolicy, ResetsBackoffOnProgress) {
  RestartPolicy policy({.most = 9, .first_backoff = milliseconds(100), .longest_backoff = milliseconds(350)});
  std::vector<int> waits;
  for (const int step : {10, 10, 10, 20, 20}) waits.push_back(int(policy.after_failure(kFailed, step).wait.count()));
  EXPECT_THAT(waits, ::testing::ElementsAre(0, 0, 100, 0, 0));
}

TEST(RestartPolicy, EndsCrashLoopsEarly) {
  RestartPolicy policy({.most = 100});
  EXPECT_TRUE(policy.after_failure(kFailed, 40).again);  // it reached step 40
  EXPECT_TRUE(policy.after_failure(kFailed, 40).again);
  EXPECT_TRUE(policy.after_failure(kFailed, 40).again);
  const auto last = policy.after_failure(kFailed, 40);
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.reason, "3 consecutive attempts advanced by fewer than 1 steps (--min-progress-steps)");
}

TEST(RestartPolicy, IgnoresProgressIfNoneIsReported) {
  RestartPolicy policy({.most = 10});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.after_failure(kFailed, {}).again) << i;
}

TEST(RestartPolicy, CountsMissingReportsIfProgressIsRequired) {
  RestartPolicy policy({.most = 10, .min_progress_steps = 5});
  EXPECT_TRUE(policy.after_failure(kFailed, {}).again);
  EXPECT_TRUE(policy.after_failure(kFailed, 4).again);
  EXPECT_FALSE(policy.after_failure(kFailed, 4).again);
}

TEST(RestartPolicy, AccumulatesSmallProgress) {
  RestartPolicy policy({.most = 10, .min_progress_steps = 5});
  for (const int step : {2, 4, 6, 8, 10, 12}) EXPECT_TRUE(policy.after_failure(kFailed, step).again) << step;
}

TEST(RestartPolicy, ZeroStepsDisableTheProgressCheck) {
  RestartPolicy policy({.most = 10, .min_progress_steps = 0});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.after_failure(kFailed, 7).again) << i;
}

TEST(RestartPolicy, DoesNotRestartAfterFinalCodes) {
  RestartPolicy policy({.most = 10, .final_codes = {2, 4}});
  EXPECT_TRUE(policy.after_failure(3, {}).again);
  EXPECT_EQ(policy.after_failure(4, {}).reason, "exit code 4 would recur");
}

}  // namespace
}  // namespace gradring::train
