// SPDX-License-Identifier: Apache-2.0
// `gradring train` over several nodes: to the same weights as on one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/train/cli/support/workplace.h"
#include "tests/train/support/text_of.h"
#include "train/launch/standalone.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using tests::Words;
using tests::Workplace;

Words joined(Words some, const Words& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

const Words kTraining = tests::short_training({"--threads", "1", "--steps", "4"});

std::string weights_in(const Workplace& place) {
  const json summary = json::parse(tests::text_of(place.path("run/summary.json")), nullptr, false);
  return summary.is_object() ? summary.at("parameters_sha256").get<std::string>() : "no summary";
}

/// The arguments of agent `node` of three, with `workers`.
Words agent(int node, int workers, int port, const Words& training) {
  return joined(
      {"launch", "--nnodes=3", fmt::format("--node-rank={}", node), fmt::format("--nproc-per-node={}", workers),
       fmt::format("--master-port={}", port), "--master-addr=127.0.0.1", "--rdzv-conf=timeout=60"},
      training);
}

TEST(OverNodes, TrainsToTheSameWeightsAsOnOne) {
  const Workplace one;
  const auto alone = one.run(joined({"launch", "--nproc-per-node=4"}, kTraining));
  ASSERT_EQ(alone.code, 0) << alone.err;

  const Workplace leader, second, third;  // a folder each, as hosts have
  const int port = train::free_tcp_port();
  tests::RunningProgram agents[] = {tests::RunningProgram(leader.gradring(agent(0, 2, port, kTraining))),
                                    tests::RunningProgram(second.gradring(agent(1, 1, port, kTraining))),
                                    tests::RunningProgram(third.gradring(agent(2, 1, port, kTraining)))};
  for (auto& running : agents) {
    const auto end = running.wait();
    EXPECT_EQ(end.code, 0) << end.err;
  }
  EXPECT_EQ(weights_in(leader), weights_in(one));
}

TEST(OverNodes, RefusesWhatNeedsOneMachine) {
  const Workplace leader, second, third;
  const int port = train::free_tcp_port();
  const Words training = joined(kTraining, {"--comm", "shm"});
  tests::RunningProgram agents[] = {tests::RunningProgram(leader.gradring(agent(0, 1, port, training))),
                                    tests::RunningProgram(second.gradring(agent(1, 1, port, training))),
                                    tests::RunningProgram(third.gradring(agent(2, 1, port, training)))};
  const auto end = agents[0].wait();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("--comm shm is for ranks of one machine"));
  EXPECT_EQ(agents[1].wait().code, 2);
  EXPECT_EQ(agents[2].wait().code, 2);
}

TEST(OverNodes, RanksWithoutALauncherOverAllAreTurnedAway) {
  const Workplace place;
  const auto end =
      place.run(kTraining, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, HasSubstr("find each other by `gradring launch --nnodes` alone"));
}

}  // namespace
}  // namespace gradring
