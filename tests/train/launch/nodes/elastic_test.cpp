// SPDX-License-Identifier: Apache-2.0
// Runs of MIN:MAX nodes: nodes join, leave and are lost, and the others continue in a world of another size.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "comm/sockets/socket_address.h"
#include "tests/train/launch/nodes/nodes_fixture.h"
#include "tests/train/launch/process_table.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;

class Elastic : public Nodes {
 protected:
  Agent& start(const std::string& nodes, int workers, const Words& work) {
    return start_agent(
        {"--nnodes=" + nodes, fmt::format("--nproc-per-node={}", workers), "--rdzv-backend=c10d",
         fmt::format("--rdzv-endpoint={}:{}", host_, port_), "--rdzv-id=elastic",
         fmt::format("--rdzv-conf=last_call_timeout={},join_timeout=30", last_call_), "--max-restarts=0"},
        work);
  }
  /// The first agent, once it listens.
  Agent& start_leader(const std::string& nodes, int workers, const Words& work) {
    Agent& leader = start(nodes, workers, work);
    EXPECT_TRUE(eventually([&] { return tcp_sockets_of(leader.launcher->pid()) > 0; }));
    return leader;
  }
  /// Waits for the mark of a worker in the agent's folder.
  static bool is_up(const Agent& agent, const std::string& mark) {
    return eventually([&] { return std::filesystem::exists(agent.folder.path() / mark); });
  }

  std::string host_ = "127.0.0.1";
  double last_call_ = 0.3;
};

TEST_F(Elastic, ContinuesWithoutALostNode) {
  const Words work = {"@0:mark=first", "@0:sleep", "mark=second", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 2, work);
  ASSERT_TRUE(is_up(other, "first.2")) << leader.errors() << other.errors();
  other.launcher->send(SIGKILL);
  EXPECT_EQ(other.launcher->wait(), -SIGKILL);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_THAT(leader.folder.text("env.0"), HasSubstr("\nWORLD_SIZE=1\n"));
  EXPECT_THAT(leader.errors(), HasSubstr("restarting all workers, which does not count as a restart"));
}

TEST_F(Elastic, AcceptsALateNode) {
  const Words work = {"@0:mark=first", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:3", 1, work);
  ASSERT_TRUE(is_up(leader, "first.0")) << leader.errors();
  Agent& late = start("1:3", 2, work);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_EQ(late.launcher->wait(), 0) << late.errors();
  EXPECT_THAT(late.folder.text("env.2"), HasSubstr("\nWORLD_SIZE=3\n"));
  EXPECT_THAT(late.folder.text("env.1"), HasSubstr("GROUP_RANK=1\n"));
}

TEST_F(Elastic, ReleasesANodeAfterSigterm) {
  const Words work = {"exit-on=15", "@0:mark=first", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "first.1")) << leader.errors() << other.errors();
  other.launcher->send(SIGTERM);
  EXPECT_EQ(other.launcher->wait(), 143) << other.errors();
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_THAT(leader.folder.text("env.0"), HasSubstr("\nWORLD_SIZE=1\n"));
  EXPECT_THAT(leader.errors(), HasSubstr("leaves"));
}

TEST_F(Elastic, WorkersThatBlameALostNodeCauseNoRestart) {
  // Rank 0 notices before its agent.
  const Words work = {"@0:mark=first", "@0:0:await=go", "@0:0:exit=161", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "first.1")) << leader.errors() << other.errors();
  ASSERT_TRUE(is_up(leader, "first.0"));
  other.launcher->send(SIGSTOP);  // the agent is silent, its kernel responds
  leader.folder.touch("go");
  ASSERT_TRUE(eventually([&] { return processes_with(leader.folder.mark()).size() == 2; }));  // agent and reaper
  other.launcher->send(SIGKILL);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_EQ(other.launcher->wait(), -SIGKILL);
}

TEST_F(Elastic, ConnectsByIpv6AndByName) {
  for (const std::string& host : {std::string("[::1]"), std::string("localhost")}) {
    agents_.clear();
    host_ = host;
    Agent& leader = start_leader("2", 1, {"dump=env"});
    Agent& other = start("2", 1, {"dump=env"});
    EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
    EXPECT_EQ(other.launcher->wait(), 0) << other.errors();
    EXPECT_THAT(other.folder.text("env.1"),
                HasSubstr(host == "localhost" ? "MASTER_ADDR=localhost\n" : "MASTER_ADDR=::1\n"));
  }
}

TEST_F(Elastic, ContinuesWithoutAStoppedAgent) {
  const Words work = {"@0:mark=first", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "first.1")) << leader.errors() << other.errors();
  other.launcher->send(SIGSTOP);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_THAT(leader.errors(), HasSubstr("its host responds, but it sent nothing"));
  other.launcher->send(SIGCONT);
  EXPECT_EQ(other.launcher->wait(), 161) << other.errors();
}

TEST_F(Elastic, ReleasesANodeBeforeTheStart) {
  last_call_ = 3;
  Agent& leader = start_leader("2:3", 1, {"dump=env"});
  Agent& second = start("2:3", 1, {"dump=env"});
  ASSERT_TRUE(eventually([&] { return !second.folder.run_folders().empty(); }));  // it has joined, and waits
  second.launcher->send(SIGTERM);
  EXPECT_EQ(second.launcher->wait(), 143) << second.errors();
  Agent& third = start("2:3", 1, {"dump=env"});
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_EQ(third.launcher->wait(), 0) << third.errors();
  EXPECT_EQ(second.folder.text("env.1"), "");
  EXPECT_THAT(third.folder.text("env.1"), HasSubstr("\nWORLD_SIZE=2\n"));
}

TEST_F(Elastic, StopsWhileWaitingForALostNode) {
  // Rank 0 blames a peer that works.
  const Words work = {"mark=up", "0:await=go", "0:exit=161", "sleep"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "up.1")) << leader.errors() << other.errors();
  leader.folder.touch("go");
  ASSERT_TRUE(eventually([&] { return processes_with(other.folder.mark()).size() == 2; }));  // agent and reaper
  leader.launcher->send(SIGTERM);
  EXPECT_EQ(leader.launcher->wait(), 143) << leader.errors();
  EXPECT_EQ(other.launcher->wait(), 143) << other.errors();
}

TEST_F(Elastic, ReportsAPortInUse) {
  const UniqueFd listener = comm::tcp::listen_at({host_, static_cast<std::uint16_t>(port_)}, 1);
  Agent& agent = start("2", 1, {"exit=0"});
  EXPECT_EQ(agent.launcher->wait(), 3);
  EXPECT_THAT(agent.errors(), HasSubstr(fmt::format("cannot listen at 0.0.0.0:{}", port_)));
  EXPECT_THAT(agent.errors(), HasSubstr("Address already in use"));
}

TEST_F(Elastic, ReportsAnUnknownHostName) {
  host_ = "no..host";  // invalid: resolved without a server
  Agent& agent = start("2", 1, {"exit=0"});
  EXPECT_TRUE(eventually([&] { return agent.errors().find("cannot resolve the host name") != std::string::npos; }))
      << agent.errors();
  agent.launcher->send(SIGINT);
  EXPECT_EQ(agent.launcher->wait(), -SIGINT);
}

TEST_F(Elastic, ReturnsTheCodeOfAFailure) {
  const Words work = {"mark=first", "1:await=first.1", "1:exit=7", "sleep"};
  Agent& leader = start_leader("2:3", 1, work);
  Agent& other = start("2:3", 1, work);
  EXPECT_EQ(leader.launcher->wait(), 7) << leader.errors();
  EXPECT_EQ(other.launcher->wait(), 7);
}

}  // namespace
}  // namespace gradring::train
