// SPDX-License-Identifier: Apache-2.0
// Runs on several nodes: agents on this machine, each with a folder of its own, that know of each other by TCP alone.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <list>
#include <memory>

#include "kernels/runtime/unique_fd.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/standalone.h"

namespace gradring::train {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

/// One agent and what it leaves.
struct Agent {
  TestFolder folder;
  std::unique_ptr<RunningLauncher> launcher;
};

class Nodes : public ::testing::Test {
 protected:
  ~Nodes() override {
    for (const Agent& agent : agents_) {
      EXPECT_TRUE(eventually([&] { return processes_with(agent.folder.mark()).empty(); })) << "processes are left";
      EXPECT_TRUE(eventually([&] { return agent.folder.run_folders().empty(); })) << "a folder is left";
    }
  }

  /// Starts agent `node` of `nodes` with `workers`, which do what `work` says.
  Agent& start(int node, int nodes, int workers, const Words& work, const Words& options = {}) {
    Agent& agent = agents_.emplace_back();
    Words words = {"launch",
                   fmt::format("--nnodes={}", nodes),
                   fmt::format("--node-rank={}", node),
                   fmt::format("--nproc-per-node={}", workers),
                   fmt::format("--master-port={}", port_),
                   "--master-addr=127.0.0.1",
                   "--rdzv-conf=timeout=30"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("train");
    words.insert(words.end(), work.begin(), work.end());
    agent.launcher = std::make_unique<RunningLauncher>(agent.folder, words);
    return agent;
  }
  /// One agent for each number of workers.
  void start_all(const std::vector<int>& workers, const Words& work, const Words& options = {}) {
    for (std::size_t node = 0; node < workers.size(); ++node)
      start(static_cast<int>(node), static_cast<int>(workers.size()), workers[node], work, options);
  }
  std::vector<int> codes() {
    std::vector<int> codes;
    for (Agent& agent : agents_) codes.push_back(agent.launcher->wait());
    return codes;
  }
  Agent& agent(std::size_t node) { return *std::next(agents_.begin(), static_cast<std::ptrdiff_t>(node)); }
  std::string said() const {
    std::string text;
    for (const Agent& agent : agents_) text += agent.launcher->errors() + "--\n";
    return text;
  }

  int port_ = free_tcp_port();
  std::list<Agent> agents_;
};

TEST_F(Nodes, CountRanksThroughUnevenNodes) {
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
    EXPECT_THAT(env, testing::Not(HasSubstr(fmt::format("MASTER_PORT={}\n", port_))));  // the agents have that one
  }
}

TEST_F(Nodes, AFailureAnywhereStopsAllAndIsTheCodeOfAll) {
  start_all({1, 2, 1}, {"mark=up", "2:await=up.1", "2:report=disk full", "2:exit=7", "sleep"});
  EXPECT_THAT(codes(), Each(7));
  EXPECT_THAT(agent(0).launcher->errors(), HasSubstr("rank 2 of 4 "));
  EXPECT_THAT(agent(0).launcher->errors(), HasSubstr("code 7, the first to fail: disk full"));
  EXPECT_THAT(agent(2).launcher->errors(), HasSubstr("the run ended with code 7; node 0 says why"));
}

TEST_F(Nodes, ShareOneBudgetOfRestarts) {
  start_all({1, 1}, {"@0:1:exit=7", "@1:0:exit=8", "@0:sleep", "@1:sleep", "dump=env"},
            {"--max-restarts=2", "--backoff=0"});
  EXPECT_THAT(codes(), Each(0)) << said();
  EXPECT_THAT(agent(1).folder.text("env.1"), HasSubstr("TORCHELASTIC_RESTART_COUNT=2\n"));
  EXPECT_THAT(agent(0).launcher->errors(), HasSubstr("restart 2 of 2"));
}

TEST_F(Nodes, PassASignalOnFromAnyOfThem) {
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

TEST_F(Nodes, TakeOneCtrlCAtAllOfThemForOne) {
  start_all({1, 1}, {"ignore=2", "mark=up", "await=go"});
  agent(0).launcher->await_mark("up", 0);
  agent(1).launcher->await_mark("up", 1);
  for (const Agent& agent : agents_) agent.launcher->send(SIGINT);
  ASSERT_TRUE(eventually([&] { return agent(0).launcher->errors().find("once more kills") != std::string::npos; }));
  for (const Agent& agent : agents_) agent.folder.touch("go");
  EXPECT_THAT(codes(), Each(130)) << said();
  EXPECT_THAT(said(), testing::Not(HasSubstr("killing")));
}

TEST_F(Nodes, AreKilledByASecondCtrlCAtAnyOfThem) {
  start_all({1, 1}, {"ignore=2", "mark=up", "sleep"});
  agent(0).launcher->await_mark("up", 0);
  agent(1).launcher->await_mark("up", 1);
  for (const Agent& agent : agents_) agent.launcher->send(SIGINT);
  ASSERT_TRUE(eventually([&] { return agent(0).launcher->errors().find("once more kills") != std::string::npos; }));
  ASSERT_TRUE(eventually([&] {
    agent(1).launcher->send(SIGINT);
    return agent(0).launcher->errors().find("killing the workers") != std::string::npos;
  }));
  EXPECT_THAT(codes(), Each(130)) << said();
}

TEST_F(Nodes, WithoutNode0TheOthersStop) {
  start_all({1, 2}, {"mark=up", "sleep"});
  agent(1).launcher->await_mark("up", 2);
  agent(0).launcher->await_mark("up", 0);
  agent(0).launcher->send(SIGKILL);
  EXPECT_EQ(agent(0).launcher->wait(), -SIGKILL);
  EXPECT_EQ(agent(1).launcher->wait(), 161);
  EXPECT_THAT(agent(1).launcher->errors(), HasSubstr("node 0 is gone"));
}

TEST_F(Nodes, WithoutOneOfThemTheRestStopsAndNamesIt) {
  start_all({1, 2, 1}, {"mark=up", "sleep"});
  for (const int rank : {1, 2}) agent(1).launcher->await_mark("up", rank);
  agent(0).launcher->await_mark("up", 0);
  agent(2).launcher->await_mark("up", 3);
  agent(1).launcher->send(SIGKILL);
  EXPECT_EQ(agent(1).launcher->wait(), -SIGKILL);
  EXPECT_EQ(agent(0).launcher->wait(), 161);
  EXPECT_EQ(agent(2).launcher->wait(), 161);
  EXPECT_THAT(agent(0).launcher->errors(), HasSubstr("node 1 ("));
}

TEST_F(Nodes, ALostOneMayComeBackIfRestartsAreLeft) {
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

TEST_F(Nodes, OfAnotherRunAreRefused) {
  start(0, 2, 1, {"exit=0"}, {"--rdzv-id=one", "--rdzv-conf=timeout=3"});
  start(1, 2, 1, {"exit=0"}, {"--rdzv-id=two", "--rdzv-conf=timeout=1"});
  EXPECT_THAT(agent(1).launcher->wait(), AnyOf(2, 3));
  EXPECT_THAT(agent(1).launcher->errors(), HasSubstr("another run"));
  EXPECT_EQ(agent(0).launcher->wait(), 3);
  EXPECT_THAT(agent(0).launcher->errors(), HasSubstr("node 1 did not come within 3 s"));
}

TEST_F(Nodes, ThatDisagreeHearSoAtOnce) {
  start(0, 2, 1, {"exit=0"});
  Agent& wrong = start(1, 3, 1, {"exit=0"});
  EXPECT_EQ(wrong.launcher->wait(), 2);
  EXPECT_THAT(wrong.launcher->errors(), HasSubstr("the leader has --nnodes=2, "));
  EXPECT_EQ(start(1, 2, 1, {"exit=0"}).launcher->wait(), 0);  // that one went on waiting
  EXPECT_EQ(agent(0).launcher->wait(), 0);
}

TEST_F(Nodes, SurviveStrangersAtTheDoor) {
  start(0, 2, 1, {"mark=up"});
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(static_cast<std::uint16_t>(port_)),
                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
  std::vector<UniqueFd> strangers;
  const std::string junk(4096, '\xff');
  eventually([&] {
    UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(one.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      if (strangers.size() % 2 == 0)
        ::send(one.get(), junk.data(), junk.size(), MSG_NOSIGNAL);  // the others say nothing
      strangers.push_back(std::move(one));
    }
    return strangers.size() == 200;
  });
  start(1, 2, 1, {"mark=up"});
  EXPECT_THAT(codes(), Each(0)) << said();
}

TEST_F(Nodes, WhereNobodyListensListTheAddressesTried) {
  start(1, 2, 1, {"exit=0"}, {"--rdzv-conf=timeout=0.3", "--master-addr=localhost"});
  EXPECT_EQ(agent(0).launcher->wait(), 3);
  EXPECT_THAT(agent(0).launcher->errors(), HasSubstr(fmt::format("127.0.0.1:{}: Connection refused", port_)));
}

TEST_F(Nodes, APortInUseIsSaidAtOnce) {
  start(0, 2, 1, {"exit=0"});
  ASSERT_TRUE(eventually([&] { return agent(0).launcher->errors().find("waiting for node 1") != std::string::npos; }));
  Agent& second = start(0, 2, 1, {"exit=0"});
  EXPECT_EQ(second.launcher->wait(), 3);
  EXPECT_THAT(second.launcher->errors(), HasSubstr(fmt::format("cannot listen at 127.0.0.1:{}", port_)));
  agent(0).launcher->send(SIGINT);
  EXPECT_EQ(agent(0).launcher->wait(), 130);
}

}  // namespace
}  // namespace gradring::train
