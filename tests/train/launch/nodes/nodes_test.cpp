// SPDX-License-Identifier: Apache-2.0
// Runs on several nodes: agents on this machine with separate folders, connected only by TCP.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include "kernels/base/file.h"
#include "tests/train/launch/nodes/nodes_fixture.h"
#include "tests/train/launch/process_table.h"

namespace gradring::train {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST_F(Nodes, NumberRanksAcrossUnevenNodes) {
  start_all({2, 1, 3}, {"dump=env"}, {"--role=r"});
  EXPECT_THAT(codes(), Each(0)) << said();
  const std::vector<std::pair<int, int>> node_and_local = {{0, 0}, {0, 1}, {1, 0}, {2, 0}, {2, 1}, {2, 2}};
  for (std::size_t rank = 0; rank < node_and_local.size(); ++rank) {
    const auto [node, local] = node_and_local[rank];
    const std::string env = "\n" + agent(static_cast<std::size_t>(node)).folder.text(fmt::format("env.{}", rank));
    for (const std::string& line :
         {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", local), fmt::format("GROUP_RANK={}", node),
          fmt::format("ROLE_RANK={}", rank), std::string("WORLD_SIZE=6"), std::string("GROUP_WORLD_SIZE=3"),
          std::string("ROLE_WORLD_SIZE=6"), std::string("MASTER_ADDR=127.0.0.1"),
          std::string("GRADRING_NODE_ADDRESS=127.0.0.1")})
      EXPECT_THAT(env, HasSubstr("\n" + line + "\n")) << "rank " << rank;
    EXPECT_THAT(env, testing::Not(HasSubstr(fmt::format("MASTER_PORT={}\n", port_))));  // that one is the agents'
  }
}

TEST_F(Nodes, ReturnTheFailureOfAnyNodeEverywhere) {
  start_all({1, 2, 1}, {"mark=up", "2:await=up.1", "2:report=disk full", "2:exit=7", "sleep"});
  EXPECT_THAT(codes(), Each(7));
  EXPECT_THAT(agent(0).errors(), HasSubstr("rank 2 of 4 "));
  EXPECT_THAT(agent(0).errors(), HasSubstr("code 7, the first to fail: disk full"));
  EXPECT_THAT(agent(2).errors(), HasSubstr("the run ended with code 7; see the output of node 0"));
}

TEST_F(Nodes, ShareOneRestartBudget) {
  start_all({1, 1}, {"@0:1:exit=7", "@1:0:exit=8", "@0:sleep", "@1:sleep", "dump=env"},
            {"--max-restarts=2", "--backoff=0"});
  EXPECT_THAT(codes(), Each(0)) << said();
  EXPECT_THAT(agent(1).folder.text("env.1"), HasSubstr("TORCHELASTIC_RESTART_COUNT=2\n"));
  EXPECT_THAT(agent(0).errors(), HasSubstr("restart 2 of 2"));
}

TEST_F(Nodes, ForwardASignalFromAnyNode) {
  for (const std::size_t receiver : {0u, 1u}) {
    agents_.clear();
    port_ = free_tcp_port();
    start_all({1, 1}, {"mark=up", "sleep"});
    agent(0).launcher->await_mark("up", 0);
    agent(1).launcher->await_mark("up", 1);
    agent(receiver).launcher->send(SIGTERM);
    EXPECT_THAT(codes(), Each(143)) << "sent to node " << receiver << "\n" << said();
  }
}

TEST_F(Nodes, CountOneCtrlCAtAllNodesOnce) {
  start_all({1, 1}, {"ignore=2", "mark=up", "await=go"});
  agent(0).launcher->await_mark("up", 0);
  agent(1).launcher->await_mark("up", 1);
  for (const Agent& agent : agents_) agent.launcher->send(SIGINT);
  ASSERT_TRUE(eventually([&] { return agent(0).errors().find("a second one kills") != std::string::npos; }));
  for (const Agent& agent : agents_) agent.folder.touch("go");
  EXPECT_THAT(codes(), Each(130)) << said();
  EXPECT_THAT(said(), testing::Not(HasSubstr("killing")));
}

TEST_F(Nodes, KillAfterASecondCtrlCAtAnyNode) {
  start_all({1, 1}, {"ignore=2", "mark=up", "sleep"});
  agent(0).launcher->await_mark("up", 0);
  agent(1).launcher->await_mark("up", 1);
  for (const Agent& agent : agents_) agent.launcher->send(SIGINT);
  ASSERT_TRUE(eventually([&] { return agent(0).errors().find("a second one kills") != std::string::npos; }));
  ASSERT_TRUE(eventually([&] {
    agent(1).launcher->send(SIGINT);
    return agent(0).errors().find("killing the workers") != std::string::npos;
  }));
  EXPECT_THAT(codes(), Each(130)) << said();
}

TEST_F(Nodes, StopIfNode0IsLost) {
  start_all({1, 2}, {"mark=up", "sleep"});
  agent(1).launcher->await_mark("up", 2);
  agent(0).launcher->await_mark("up", 0);
  agent(0).launcher->send(SIGKILL);
  EXPECT_EQ(agent(0).launcher->wait(), -SIGKILL);
  EXPECT_EQ(agent(1).launcher->wait(), 161);
  EXPECT_THAT(agent(1).errors(), HasSubstr("lost node 0"));
}

TEST_F(Nodes, StopAndNameALostNode) {
  start_all({1, 2, 1}, {"mark=up", "sleep"});
  for (const int rank : {1, 2}) agent(1).launcher->await_mark("up", rank);
  agent(0).launcher->await_mark("up", 0);
  agent(2).launcher->await_mark("up", 3);
  agent(1).launcher->send(SIGKILL);
  EXPECT_EQ(agent(1).launcher->wait(), -SIGKILL);
  EXPECT_EQ(agent(0).launcher->wait(), 161);
  EXPECT_EQ(agent(2).launcher->wait(), 161);
  EXPECT_THAT(agent(0).errors(), HasSubstr("node 1 ("));
}

TEST_F(Nodes, LetALostNodeRejoinIfRestartsAreLeft) {
  const Words work = {"@0:mark=up", "@0:sleep", "mark=again"};
  start_all({1, 1}, work, {"--max-restarts=1"});
  agent(0).launcher->await_mark("up", 0);
  agent(1).launcher->await_mark("up", 1);
  agent(1).launcher->send(SIGKILL);
  EXPECT_EQ(agent(1).launcher->wait(), -SIGKILL);
  Agent& back = start(1, 2, 1, work);
  EXPECT_EQ(back.launcher->wait(), 0) << said();
  EXPECT_EQ(agent(0).launcher->wait(), 0);
  back.launcher->await_mark("again", 1);
}

TEST_F(Nodes, RejectNodesOfAnotherRun) {
  start(0, 2, 1, {"exit=0"}, {"--rdzv-id=one", "--rdzv-conf=timeout=3"});
  start(1, 2, 1, {"exit=0"}, {"--rdzv-id=two", "--rdzv-conf=timeout=1"});
  EXPECT_THAT(agent(1).launcher->wait(), AnyOf(2, 3));
  EXPECT_THAT(agent(1).errors(), HasSubstr("another run"));
  EXPECT_EQ(agent(0).launcher->wait(), 3);
  EXPECT_THAT(agent(0).errors(), HasSubstr("node 1 did not join within 3 s"));
}

TEST_F(Nodes, HearWhyTheLeaderGivesUp) {
  start(0, 3, 1, {"exit=0"}, {"--rdzv-conf=timeout=2"});
  start(1, 3, 1, {"exit=0"});
  EXPECT_EQ(agent(0).launcher->wait(), 3) << agent(0).errors();
  EXPECT_EQ(agent(1).launcher->wait(), 3) << agent(1).errors();
  EXPECT_THAT(agent(1).errors(), HasSubstr("the run ended with code 3: node 2 did not join within 2 s"));
}

TEST_F(Nodes, ListenWhereTheyAreTold) {
  start(0, 2, 1, {"exit=0"}, {"--listen=127.0.0.1"});
  ASSERT_TRUE(eventually([&] { return agent(0).errors().find("waiting for node 1") != std::string::npos; }));
  EXPECT_THAT(agent(0).errors(), HasSubstr(fmt::format("listening at 127.0.0.1:{}\n", port_)));
  start(1, 2, 1, {"exit=0"});
  EXPECT_THAT(codes(), Each(0)) << said();
}

TEST_F(Nodes, ReportAListenAddressOfAnotherHostAtOnce) {
  start(0, 2, 1, {"exit=0"}, {"--listen=192.0.2.1"});  // reserved for documentation
  EXPECT_EQ(agent(0).launcher->wait(), 3);
  EXPECT_THAT(agent(0).errors(), HasSubstr("which must be an address of this host"));
}

TEST_F(Nodes, ReportDifferentOptionsAtOnce) {
  start(0, 2, 1, {"exit=0"});
  Agent& wrong = start(1, 3, 1, {"exit=0"});
  EXPECT_EQ(wrong.launcher->wait(), 2);
  EXPECT_THAT(wrong.errors(), HasSubstr("the leader has --nnodes=2, "));
  EXPECT_EQ(start(1, 2, 1, {"exit=0"}).launcher->wait(), 0);  // the leader kept waiting
  EXPECT_EQ(agent(0).launcher->wait(), 0);
}

TEST_F(Nodes, SayAtTheEndWhichNodeWasRejected) {
  start(0, 2, 1, {"exit=0"}, {"--rdzv-conf=timeout=2"});
  EXPECT_EQ(start(1, 3, 1, {"exit=0"}).launcher->wait(), 2);
  EXPECT_EQ(agent(0).launcher->wait(), 3);
  EXPECT_THAT(agent(0).errors(), HasSubstr("node 1 did not join within 2 s (rejected a node: the leader has "
                                           "--nnodes=2, "));
  EXPECT_THAT(agent(0).errors(), HasSubstr(" has --nnodes=3: they must be the same)"));
}

TEST_F(Nodes, SurviveUnauthenticatedConnections) {
  start(0, 2, 1, {"mark=up"});
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<std::uint16_t>(port_)),
                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
  std::vector<UniqueFd> connections;
  const std::string junk(4096, '\xff');
  eventually([&] {
    UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(one.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      if (connections.size() % 2 == 0)
        ::send(one.get(), junk.data(), junk.size(), MSG_NOSIGNAL);  // the others send nothing
      connections.push_back(std::move(one));
    }
    return connections.size() == 200;
  });
  start(1, 2, 1, {"mark=up"});
  EXPECT_THAT(codes(), Each(0)) << said();
}

TEST_F(Nodes, ListTheAddressesTriedIfNobodyListens) {
  start(1, 2, 1, {"exit=0"}, {"--rdzv-conf=timeout=0.3", "--master-addr=localhost"});
  EXPECT_EQ(agent(0).launcher->wait(), 3);
  EXPECT_THAT(agent(0).errors(), HasSubstr(fmt::format("127.0.0.1:{}: Connection refused", port_)));
}

TEST_F(Nodes, ReportAPortInUseAtOnce) {
  start(0, 2, 1, {"exit=0"});
  ASSERT_TRUE(eventually([&] { return agent(0).errors().find("waiting for node 1") != std::string::npos; }));
  Agent& second = start(0, 2, 1, {"exit=0"});
  EXPECT_EQ(second.launcher->wait(), 3);
  EXPECT_THAT(second.errors(), HasSubstr(fmt::format("cannot listen at 0.0.0.0:{}", port_)));
  EXPECT_THAT(second.errors(), HasSubstr("this is another node: give it --node-rank, from 1 to 1 (default 0)"));
  agent(0).launcher->send(SIGINT);
  EXPECT_EQ(agent(0).launcher->wait(), 130);
}

}  // namespace
}  // namespace gradring::train
