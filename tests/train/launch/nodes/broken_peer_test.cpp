// SPDX-License-Identifier: Apache-2.0
// Agents that know the token but send invalid messages: the peer reports it and continues without them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/train/launch/launcher_fixture.h"
#include "train/launch/nodes/message.h"
#include "train/launch/nodes/rendezvous.h"
#include "train/launch/nodes/token.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kPatience = std::chrono::seconds(30);

class BrokenAgent : public LauncherFixture {
 protected:
  /// `launch` of node 0, whose worker leaves a mark and performs `work`.
  std::unique_ptr<RunningLauncher> start_leader(const std::string& nodes, const std::string& work = "sleep") const {
    return std::make_unique<RunningLauncher>(
        folder_,
        std::vector<std::string>{"launch", "--nnodes=" + nodes, "--nproc-per-node=1", "--rdzv-backend=c10d",
                                 fmt::format("--rdzv-endpoint=127.0.0.1:{}", port_), "--rdzv-id=broken",
                                 "--max-restarts=0", "--rdzv-conf=last_call_timeout=0.2,join_timeout=900", "train",
                                 "@0:mark=first", "@0:" + work, "mark=second"},
        std::vector<int>{}, std::vector<std::string>{"GRADRING_TOKEN=token of this test"});
  }
  /// An authenticated link to the leader.
  NodeLink link() const {
    const LaunchOptions options{.run_id = "broken", .token = "token of this test"};
    std::optional<NodeLink> link;
    eventually([&] {
      Reasons ignored;
      link = dial_leader("127.0.0.1", port_, identity_of(options, AgentRole::follower), Deadline::after(kPatience),
                         ignored);
      return link.has_value();
    });
    if (!link) throw std::runtime_error("no leader");
    return std::move(*link);
  }
  NodeLink joined(int nodes, const json& changes = json::object()) const {
    json message =
        join_message({.node = -1, .nodes = {nodes == 1 ? 1 : 2, 2}, .workers = 1, .role = "default", .host = "h"});
    message.update(changes);
    NodeLink agent = link();
    agent.send(message);
    return agent;
  }
  /// The next message of that kind.
  static json await(NodeLink& agent, const std::string& kind) {
    for (const auto deadline = Deadline::after(kPatience); agent.open() && !deadline.passed();) {
      for (json& message : agent.receive(1))
        if (message.at("say") == kind) return std::move(message);
      agent.beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    throw std::runtime_error("no message '" + kind + "': " + agent.reason());
  }

  const int port_ = free_tcp_port();
};

TEST_F(BrokenAgent, InvalidSignalDoesNotEndAnElasticRun) {
  auto leader = start_leader("1:2");
  leader->await_mark("first", 0);
  NodeLink agent = joined(1);
  await(agent, "start");
  agent.send(signal_message(99999));
  EXPECT_EQ(leader->wait(), 0) << errors();
  EXPECT_THAT(errors(), HasSubstr("lost node 1 (h): it sent an invalid message: 'number' of 'signal' is 99999"));
}

TEST_F(BrokenAgent, InvalidSignalEndsAFixedRunAsALostNode) {
  auto leader = start_leader("2");
  NodeLink agent = joined(2);
  await(agent, "start");
  agent.send({{"say", "signal"}, {"number", -1}});
  EXPECT_EQ(leader->wait(), 161) << errors();
}

TEST_F(BrokenAgent, IsRejectedWithTooManyWorkers) {
  auto leader = start_leader("2", "pause=1");
  NodeLink agent = joined(2, {{"workers", 2147483647}});
  EXPECT_THAT(refusal_in(await(agent, "refuse")),
              HasSubstr("'workers' of 'join' is 2147483647, expected a whole number"));
  NodeLink next = joined(2);
  await(next, "start");
  next.send(exit_message({.exit = {.rank = 1}}));
  EXPECT_EQ(finish_in(await(next, "finish")).code, 0);
  EXPECT_EQ(leader->wait(), 0) << errors();
}

TEST_F(BrokenAgent, EndsAFixedRunByLeaving) {
  auto leader = start_leader("2");
  NodeLink agent = joined(2);
  await(agent, "start");
  agent.send(leave_message());
  EXPECT_EQ(leader->wait(), 161) << errors();
  EXPECT_THAT(errors(), HasSubstr("it asked to leave a run of a fixed number of nodes"));
}

TEST_F(BrokenAgent, CannotPrintControlCharacters) {
  auto leader = start_leader("2");
  NodeLink agent = joined(2, {{"host", "h\x1b[2J"}});
  await(agent, "start");
  agent.send(exit_message({.exit = {.rank = 1, .code = 7, .host = "\x1b]0;title\x07", .message = "\x1b[31m"}}));
  EXPECT_EQ(leader->wait(), 7) << errors();
  EXPECT_THAT(errors(), HasSubstr("\\x1b]0;title\\x07"));
  EXPECT_THAT(errors(), Not(HasSubstr("\x1b")));
}

class BrokenLeader : public LauncherFixture {
 protected:
  /// An agent with two workers.
  std::unique_ptr<RunningLauncher> start_agent() const {
    return std::make_unique<RunningLauncher>(
        folder_,
        std::vector<std::string>{"launch", "--nnodes=2", "--node-rank=1", "--nproc-per-node=2",
                                 "--master-addr=127.0.0.1", fmt::format("--master-port={}", port_), "train", "exit=0"},
        std::vector<int>{}, std::vector<std::string>{"GRADRING_TOKEN=token of this test"});
  }
  std::list<NodeLink> admitted() {
    std::list<NodeLink> links;
    EXPECT_TRUE(eventually([&] {
      for (auto& admitted : acceptor_.admit()) links.emplace_back(std::move(admitted.socket));
      return !links.empty();
    }));
    return links;
  }

  const int port_ = free_tcp_port();
  const LaunchOptions options_{.token = "token of this test"};
  Acceptor acceptor_{"127.0.0.1", port_, identity_of(options_, AgentRole::leader), 1};
};

TEST_F(BrokenLeader, IsLeftIfItAssignsTooFewRanks) {
  const auto agent = start_agent();
  std::list<NodeLink> links = admitted();
  ASSERT_EQ(links.size(), 1u);
  links.front().send(
      start_message({.assignment = {.node = 1, .nodes = 2, .first_rank = 2, .world_size = 3, .master_port = 1},
                     .address = "127.0.0.1",
                     .nonce = std::string(32, '0')}));
  EXPECT_EQ(agent->wait(), 161) << errors();
  EXPECT_THAT(errors(), HasSubstr("it assigned fewer ranks than this node has workers"));
}

}  // namespace
}  // namespace gradring::train
