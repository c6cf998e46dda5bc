// SPDX-License-Identifier: Apache-2.0
// Strangers knock at the agents' port while a training runs over two nodes.
#include "tests/train/launch/peers/strangers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/support/text_of.h"
#include "train/launch/nodes/identity.h"
#include "train/launch/standalone.h"

namespace gradring {
namespace {

using nlohmann::json;
using tests::RunningProgram;
using tests::Words;
using tests::Workplace;

constexpr std::int64_t kMostGrowthKb = 16 * 1024;

/// As many steps as it takes: it is asked to stop when the strangers have been.
Words agent(int node, int port) {
  Words words = {"launch",
                 "--nnodes=2",
                 fmt::format("--node-rank={}", node),
                 fmt::format("--master-port={}", port),
                 "--master-addr=127.0.0.1",
                 "--rdzv-id=strangers"};
  const Words training = tests::short_training({"--threads", "1", "--steps", "1000000", "--epochs", "1000000"});
  words.insert(words.end(), training.begin(), training.end());
  return words;
}

/// The most memory that a process has had, in KiB.
std::int64_t peak_of(pid_t pid) {
  const std::string status = tests::text_of(fmt::format("/proc/{}/status", pid));
  const auto at = status.find("VmHWM:");
  return at == std::string::npos ? -1 : std::stoll(status.substr(at + 6));
}

/// What a process has had of the processors, in milliseconds.
long processor_ms_of(pid_t pid) {
  std::istringstream words(tests::text_of(fmt::format("/proc/{}/stat", pid)));
  std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
  return (std::stol(word.at(13)) + std::stol(word.at(14))) * 1000 / ::sysconf(_SC_CLK_TCK);
}

/// Strangers come from other machines: what sending them costs is not to be taken from the training.
void give_way_to_the_training() {
  const sched_param no_priority{};
  EXPECT_EQ(::sched_setscheduler(0, SCHED_IDLE, &no_priority), 0);
}

/// STRANGERS of the environment, for who measures; in a hurry there are fewer.
int strangers_to_come() {
  const char* given = std::getenv("STRANGERS");
  return given == nullptr ? 2'000 : std::max(1, std::atoi(given));
}

/// The times of a run's steps, by its metrics.
std::vector<double> step_times(const Workplace& place) {
  std::vector<double> times;
  for (const std::string& line : tests::lines_of(place.path("run/metrics.jsonl"))) {
    const json record = json::parse(line, nullptr, false);
    if (record.is_object() && record.value("event", "") == "step")
      times.push_back(8.0 * 2 / record.at("samples_per_second").get<double>());
  }
  return times;
}

std::vector<double> losses(const Workplace& place, std::size_t most) {
  std::vector<double> losses;
  for (const std::string& line : tests::lines_of(place.path("run/metrics.jsonl")))
    if (const json record = json::parse(line, nullptr, false); record.is_object() && losses.size() < most)
      losses.push_back(record.at("loss"));
  return losses;
}

double median_of(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values.at(values.size() / 2);
}

TEST(OnOneNode, NobodyHasATcpSocketWhileATrainingRuns) {
  const Workplace place;
  Words words = tests::short_training({"--threads", "1", "--steps", "1000000", "--epochs", "1000000"});
  words.insert(words.begin(), {"launch", "--nproc-per-node=2"});
  RunningProgram launcher(place.gradring(words));
  ASSERT_TRUE(train::eventually([&] { return step_times(place).size() > 5; }));
  const auto processes = train::children_of(launcher.pid());
  EXPECT_EQ(processes.size(), 3u) << "two workers and the guard";
  EXPECT_EQ(train::tcp_sockets_of(launcher.pid()), 0);
  for (const pid_t pid : processes) EXPECT_EQ(train::tcp_sockets_of(pid), 0) << train::process_name(pid);
  ::kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait().code, 143);
}

/// A training over two agents of this machine, in blocks of steps without strangers and with them, in turns: whatever else the
/// machine does hits both alike.
class StrangersAtTheAgentsPort : public ::testing::Test {
 protected:
  static constexpr int kSenders = 4, kInABlock = 400;
  static constexpr std::chrono::milliseconds kQuietTime{500};
  /// Steps from the first number on, to the second.
  using Block = std::pair<std::size_t, std::size_t>;

  std::size_t steps() const { return step_times(first_).size(); }
  /// Asleep, for whoever looks at the training slows it down.
  void leave_alone() {
    const std::size_t before = steps();
    std::this_thread::sleep_for(kQuietTime);
    quiet_.push_back({before, steps()});
  }
  /// As fast as they are answered.
  void knock(std::deque<tests::Strangers>& senders) {
    const std::size_t before = steps();
    std::vector<std::jthread> threads;
    for (tests::Strangers& sender : senders)
      threads.emplace_back([&] {
        give_way_to_the_training();
        for (int i = 0; i < kInABlock / kSenders; ++i) let_in_ += !sender.knock();
      });
    threads.clear();
    busy_.push_back({before, steps()});
  }
  double median_ms(const std::vector<Block>& blocks) const {
    const std::vector<double> all = step_times(first_);
    std::vector<double> times;
    for (const auto& [begin, end] : blocks)
      for (std::size_t i = begin; i < end; ++i) times.push_back(all.at(i));
    return 1e3 * median_of(times);
  }

  Workplace first_, second_;
  int port_ = train::free_tcp_port();
  RunningProgram leading_{first_.gradring(agent(0, port_))};
  RunningProgram following_{second_.gradring(agent(1, port_))};
  std::atomic<int> let_in_ = 0;
  std::vector<Block> quiet_, busy_;
};

TEST_F(StrangersAtTheAgentsPort, ChangeNeitherTheTrainingNorTheAgent) {
  ASSERT_TRUE(train::eventually([&] { return steps() > 80; }));  // the first ones are slow
  const std::int64_t peak = peak_of(leading_.pid());
  const long processor = processor_ms_of(leading_.pid());
  train::LaunchOptions options;
  options.run_id = "strangers";
  const auto member = identity_of(options, train::NodePart::follows);
  std::deque<tests::Strangers> senders;
  for (int i = 0; i < kSenders; ++i) senders.emplace_back(port_, member);
  int strangers = 0;
  for (const int all = strangers_to_come(); strangers < all && !HasFatalFailure(); strangers += kInABlock) {
    leave_alone();
    knock(senders);
  }
  const std::int64_t growth = peak_of(leading_.pid()) - peak;
  const long agent_ms = processor_ms_of(leading_.pid()) - processor;
  EXPECT_EQ(let_in_, 0);
  EXPECT_LE(growth, kMostGrowthKb);
  ::kill(leading_.pid(), SIGTERM);
  EXPECT_EQ(leading_.wait().code, 143);
  EXPECT_EQ(following_.wait().code, 143);

  const Workplace alone;
  const std::size_t made = steps();
  Words whole = tests::short_training({"--threads", "1", "--epochs", "1000000", "--steps", std::to_string(made)});
  whole.insert(whole.begin(), {"launch", "--nproc-per-node=2"});
  ASSERT_EQ(alone.run(whole).code, 0);
  EXPECT_EQ(losses(first_, made), losses(alone, made)) << "every step's and every test's, to the last bit";
  fmt::print(
      "{} strangers: median step {:.3f} ms, {:.3f} ms without them; the agent took {} KiB, and {} ms of a processor\n",
      strangers, median_ms(busy_), median_ms(quiet_), growth, agent_ms);
}

}  // namespace
}  // namespace gradring
