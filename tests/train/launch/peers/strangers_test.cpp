// SPDX-License-Identifier: Apache-2.0
// Ten thousand strangers knock at the agents' port while a training runs over two nodes.
#include "tests/train/launch/peers/strangers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
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

constexpr int kStrangers = 10'000;
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

/// STRANGERS_IN_A_STEP of the environment, for who measures; in a hurry many come at once.
int strangers_in_a_step() {
  const char* given = std::getenv("STRANGERS_IN_A_STEP");
  return given == nullptr ? 20 : std::max(1, std::atoi(given));
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

/// Waits for the next line of its metrics.
bool goes_on(const Workplace& place) {
  const auto size = [&] { return std::filesystem::file_size(place.path("run/metrics.jsonl")); };
  return train::eventually([&, before = size()] { return size() > before; });
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

TEST(StrangersAtTheAgentsPort, ChangeNeitherTheTrainingNorTheAgent) {
  const Workplace first, second;
  const int port = train::free_tcp_port();
  RunningProgram leading(first.gradring(agent(0, port)));
  RunningProgram following(second.gradring(agent(1, port)));
  const auto trained = [&](std::size_t more, std::size_t than = 0) {
    return train::eventually([&] { return step_times(first).size() >= than + more; });
  };
  ASSERT_TRUE(trained(300));
  const std::size_t quiet = step_times(first).size();
  const std::int64_t before = peak_of(leading.pid());

  train::LaunchOptions options;
  options.run_id = "strangers";
  const auto member = identity_of(options, train::NodePart::follows);
  tests::Strangers strangers(port, member);
  int let_in = 0;
  const int in_a_step = strangers_in_a_step();
  const long processor_before = processor_ms_of(leading.pid());
  for (int i = 0; i < kStrangers; ++i) {
    ASSERT_TRUE(i % in_a_step != 0 || goes_on(first));
    let_in += !strangers.knock();
  }
  const std::size_t busy = step_times(first).size();
  const long processor = processor_ms_of(leading.pid()) - processor_before;
  const std::int64_t growth = peak_of(leading.pid()) - before;
  EXPECT_EQ(let_in, 0);
  EXPECT_LE(growth, kMostGrowthKb);
  ::kill(leading.pid(), SIGTERM);
  EXPECT_EQ(leading.wait().code, 143);
  EXPECT_EQ(following.wait().code, 143);

  const Workplace alone;
  Words whole = tests::short_training({"--threads", "1", "--epochs", "1000000", "--steps", std::to_string(busy)});
  whole.insert(whole.begin(), {"launch", "--nproc-per-node=2"});
  ASSERT_EQ(alone.run(whole).code, 0);
  EXPECT_EQ(losses(first, busy), losses(alone, busy)) << "every step's and every test's, to the last bit";
  const std::vector<double> times = step_times(first);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(quiet);
  fmt::print(
      "{} strangers in {} steps: median step {:.3f} ms, {:.3f} ms before them; the agent took {} KiB and {} ms of a "
      "processor for "
      "them\n",
      kStrangers, busy - quiet, 1e3 * median_of({middle, times.begin() + static_cast<std::ptrdiff_t>(busy)}),
      1e3 * median_of({times.begin() + 20, middle}), growth, processor);
}

}  // namespace
}  // namespace gradring
