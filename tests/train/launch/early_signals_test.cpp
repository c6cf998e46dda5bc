// SPDX-License-Identifier: Apache-2.0
// SIGUSR1 and SIGUSR2 early in a run, to the launcher or to a rank: the run returns 0 only if it did its work.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/support/text_of.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

using ::testing::AnyOf;
using tests::joined;
using tests::Words;
using tests::Workplace;
using namespace std::chrono_literals;

constexpr int kSignals[] = {SIGUSR1, SIGUSR2};

const Words kTraining = tests::short_training({"--threads", "1", "--steps", "4"});

bool has_variable(pid_t pid, const std::string& entry) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  const std::string variables = '\0' + std::string(std::istreambuf_iterator<char>(file), {});
  return variables.find('\0' + entry + '\0') != std::string::npos;
}

/// Whether it has blocked SIGUSR1, to handle it.
bool takes_signals(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return (std::stoull(line.substr(7), nullptr, 16) >> (SIGUSR1 - 1) & 1) != 0;
  return false;
}

/// The launcher's children in the order in which they were started: its reaper, then the ranks.
pid_t child(pid_t launcher, std::size_t number) {
  std::vector<pid_t> children = children_of(launcher);
  std::ranges::sort(children);
  return number < children.size() ? children[number] : -1;
}

/// The process of a rank that executes its program; -1: not yet.
pid_t rank_of(pid_t launcher, int rank, const std::string& attempt = "0") {
  for (const pid_t pid : children_of(launcher))
    if (has_variable(pid, fmt::format("RANK={}", rank)) && has_variable(pid, "TORCHELASTIC_RESTART_COUNT=" + attempt))
      return pid;
  return -1;
}

/// A moment of a run: the process that exists then; -1: not yet.
using Moment = std::pair<const std::string, std::function<pid_t(pid_t launcher)>>;

const std::map<std::string, std::function<pid_t(pid_t)>> kOfTheLauncher = {
    {"the launcher at once", [](pid_t launcher) { return launcher; }},
    {"the launcher that takes signals", [](pid_t launcher) { return takes_signals(launcher) ? launcher : -1; }},
    {"the launcher with its reaper", [](pid_t launcher) { return child(launcher, 0) > 0 ? launcher : -1; }},
    {"the launcher with a rank", [](pid_t launcher) { return child(launcher, 1) > 0 ? launcher : -1; }},
    {"the launcher with both ranks", [](pid_t launcher) { return rank_of(launcher, 1) > 0 ? launcher : -1; }},
};

const std::map<std::string, std::function<pid_t(pid_t)>> kOfARank = {
    {"rank 0 just forked", [](pid_t launcher) { return child(launcher, 1); }},
    {"rank 0 that executes its program", [](pid_t launcher) { return rank_of(launcher, 0); }},
    {"rank 1 that executes its program", [](pid_t launcher) { return rank_of(launcher, 1); }},
};

const std::map<std::string, std::function<pid_t(pid_t)>> kOfATrainingRank = {
    {"rank 0 that takes signals",
     [](pid_t launcher) {
       const pid_t rank = rank_of(launcher, 0);
       return rank > 0 && takes_signals(rank) ? rank : -1;
     }},
};

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/// Sends the signal at that moment, unless the program has ended before.
void hit(pid_t launcher, const Moment& moment, int number) {
  pid_t target = -1;
  EXPECT_TRUE(eventually([&] { return (target = moment.second(launcher)) > 0 || has_ended(launcher); }))
      << moment.first;
  if (target > 0) signal_process(target, number);
}

bool has_summary(const Workplace& place) {
  return tests::try_parse_json(tests::text_of(place.path("run/summary.json"))).contains("parameters_sha256");
}

/// A training that continued has a summary; any other returns the code of the signal, or that it left with a
/// checkpoint.
void expect_done_or_failed(const tests::ProgramEnd& end, const Workplace& place, int number) {
  EXPECT_THAT(end.code, AnyOf(0, 128 + number, 143)) << end.err;
  EXPECT_TRUE(end.code != 0 || has_summary(place)) << "0 without a summary: " << end.err;
  EXPECT_TRUE(eventually([&] { return processes_with("TMPDIR=" + place.folder().path().string()).empty(); }));
}

void expect_no_success_for_nothing(const Words& command, const Moment& moment) {
  for (const int number : kSignals) {
    SCOPED_TRACE(fmt::format("signal {} to {}", number, moment.first));
    const Workplace place;
    tests::RunningProgram launcher(place.gradring(command));
    hit(launcher.pid(), moment, number);
    expect_done_or_failed(launcher.wait(), place, number);
  }
}

TEST(EarlySignals, NoSuccessOfKilledProgram) {
  for (const auto& moments : {kOfTheLauncher, kOfARank})
    for (const Moment& moment : moments)
      for (const int number : kSignals) {
        SCOPED_TRACE(fmt::format("signal {} to {}", number, moment.first));
        const Workplace place;
        tests::RunningProgram launcher(place.gradring({"launch", "--nproc-per-node=2", "--", "sleep", "1000"}));
        hit(launcher.pid(), moment, number);
        EXPECT_EQ(launcher.wait(60s).code, 128 + number);
      }
}

TEST(EarlySignals, NoSuccessWithoutSummaryOfLaunchedTraining) {
  for (const auto& moments : {kOfTheLauncher, kOfARank, kOfATrainingRank})
    for (const Moment& moment : moments)
      expect_no_success_for_nothing(joined({"launch", "--nproc-per-node=2"}, kTraining), moment);
}

TEST(EarlySignals, NoSuccessWithoutSummaryOfSpawnedTraining) {
  for (const auto& moments : {kOfTheLauncher, kOfARank, kOfATrainingRank})
    for (const Moment& moment : moments) expect_no_success_for_nothing(joined(kTraining, {"--nprocs", "2"}), moment);
}

/// At random moments.
TEST(EarlySignals, NoSuccessWithoutSummaryOfOneRank) {
  for (auto after = 0ms; after <= 600ms; after += 60ms) {
    const auto began = std::chrono::steady_clock::now();
    expect_no_success_for_nothing(kTraining, {fmt::format("the training after {} ms", after.count()), [&](pid_t pid) {
                                                return std::chrono::steady_clock::now() - began < after ? -1 : pid;
                                              }});
  }
}

TEST(EarlySignals, NoSuccessWithoutSummaryOfRestartedTraining) {
  const Words command = joined({"launch", "--nproc-per-node=2", "--max-restarts=1"},
                               joined(kTraining, {"--inject", "kill:rank=1,step=1", "--resume", "auto"}));
  for (const Moment& moment : std::map<std::string, std::function<pid_t(pid_t)>>{
           {"the launcher that starts again", [](pid_t pid) { return rank_of(pid, 0, "1") > 0 ? pid : -1; }},
           {"rank 1 that was started again", [](pid_t pid) { return rank_of(pid, 1, "1"); }}})
    expect_no_success_for_nothing(command, moment);
}

TEST(EarlySignals, NoSuccessWithoutSummaryOfTwoAgents) {
  const std::map<std::string, std::function<pid_t(pid_t)>> moments = {
      {"an agent at once", kOfTheLauncher.at("the launcher at once")},
      {"an agent that takes signals", kOfTheLauncher.at("the launcher that takes signals")},
      {"an agent with its rank", kOfTheLauncher.at("the launcher with a rank")},
      {"the rank of an agent", [](pid_t agent) { return child(agent, 1); }},
  };
  for (const int hit_node : {0, 1})
    for (const Moment& moment : moments)
      for (const int number : kSignals) {
        SCOPED_TRACE(fmt::format("signal {} to {}, node {}", number, moment.first, hit_node));
        const Workplace leader, other;
        const int port = free_tcp_port();
        const auto agent = [&](int node) {
          return joined({"launch", "--nnodes=2", fmt::format("--node-rank={}", node), "--nproc-per-node=1",
                         fmt::format("--master-port={}", port), "--master-addr=127.0.0.1", "--rdzv-conf=timeout=2"},
                        kTraining);
        };
        const Workplace::Variables token = {{"GRADRING_TOKEN", "token of this test"}};
        tests::RunningProgram agents[] = {tests::RunningProgram(leader.gradring(agent(0), token)),
                                          tests::RunningProgram(other.gradring(agent(1), token))};
        hit(agents[hit_node].pid(), moment, number);
        for (auto& running : agents) {
          const auto end = running.wait();
          EXPECT_TRUE(end.code != 0 || has_summary(leader)) << "0 without a summary: " << end.err;
          EXPECT_NE(end.code, 128 + SIGKILL) << "it did not end";
        }
      }
}

}  // namespace
}  // namespace gradring::train
