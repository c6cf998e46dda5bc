// SPDX-License-Identifier: Apache-2.0
// `gradring train` over several nodes reaches the same weights as on one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/launch/nodes/recording_proxy.h"
#include "tests/train/support/text_of.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using tests::joined;
using tests::Words;
using tests::Workplace;

const Workplace::Variables kToken = {{"GRADRING_TOKEN", "token of this test"}};
const Words kNodesTraining = tests::short_training({"--threads", "1", "--steps", "4"});

std::string weights_of_run(const Workplace& place) {
  const json summary = tests::try_parse_json(tests::text_of(place.path("run/summary.json")));
  return summary.is_object() ? summary.at("parameters_sha256").get<std::string>() : "no summary";
}

/// The arguments of agent `node` of three, with `workers`.
Words agent(int node, int workers, int port, const Words& training) {
  return joined(
      {"launch", "--nnodes=3", fmt::format("--node-rank={}", node), fmt::format("--nproc-per-node={}", workers),
       fmt::format("--master-port={}", port), "--master-addr=127.0.0.1", "--rdzv-conf=timeout=60"},
      training);
}

TEST(OverNodes, TrainsToTheSameWeightsAsOnOneNode) {
  const Workplace one;
  const auto alone = one.run(joined({"launch", "--nproc-per-node=4"}, kNodesTraining));
  ASSERT_EQ(alone.code, 0) << alone.err;

  const Workplace leader, second, third;  // separate folders, as on separate hosts
  const int port = train::free_tcp_port();
  tests::RunningProgram agents[] = {tests::RunningProgram(leader.gradring(agent(0, 2, port, kNodesTraining), kToken)),
                                    tests::RunningProgram(second.gradring(agent(1, 1, port, kNodesTraining), kToken)),
                                    tests::RunningProgram(third.gradring(agent(2, 1, port, kNodesTraining), kToken))};
  for (auto& running : agents) {
    const auto end = running.wait();
    EXPECT_EQ(end.code, 0) << end.err;
  }
  EXPECT_EQ(weights_of_run(leader), weights_of_run(one));
}

TEST(OverNodes, NeverSendsTheRanksToken) {
  const Workplace leader, second, third;
  const int port = train::free_tcp_port();
  tests::RecordingProxy proxy(port);
  tests::RunningProgram agents[] = {
      tests::RunningProgram(leader.gradring(agent(0, 2, port, kNodesTraining), kToken)),
      tests::RunningProgram(second.gradring(agent(1, 1, proxy.port(), kNodesTraining), kToken)),
      tests::RunningProgram(third.gradring(agent(2, 1, port, kNodesTraining), kToken))};
  for (auto& running : agents) EXPECT_EQ(running.wait().code, 0);

  int contacts = 0;
  for (const json& message : proxy.messages()) {
    if (message.value("say", "") != "key") continue;
    const auto bytes = message.at("value").get<std::vector<int>>();
    const std::string value(bytes.begin(), bytes.end());
    contacts += message.at("name").get<std::string>().starts_with("key-tcp");
    EXPECT_FALSE(std::regex_search(value, std::regex("[0-9a-f]{64}"))) << message.at("name") << " is " << value;
  }
  EXPECT_GE(contacts, 4) << "where each rank listens";
}

TEST(OverNodes, RejectsSharedMemory) {
  const Workplace leader, second, third;
  const int port = train::free_tcp_port();
  const Words training = joined(kNodesTraining, {"--comm", "shm"});
  tests::RunningProgram agents[] = {tests::RunningProgram(leader.gradring(agent(0, 1, port, training), kToken)),
                                    tests::RunningProgram(second.gradring(agent(1, 1, port, training), kToken)),
                                    tests::RunningProgram(third.gradring(agent(2, 1, port, training), kToken))};
  const auto end = agents[0].wait();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("--comm shm connects ranks of one machine only"));
  EXPECT_EQ(agents[1].wait().code, 2);
  EXPECT_EQ(agents[2].wait().code, 2);
}

TEST(OverNodes, RejectsRanksThatDoNotKnowWhereRank0Is) {
  const Workplace place;
  const auto end =
      place.run(kNodesTraining, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, HasSubstr("set MASTER_ADDR for all ranks to the name or the address of its host"));
}

}  // namespace
}  // namespace gradring
