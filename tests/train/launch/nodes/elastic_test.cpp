// SPDX-License-Identifier: Apache-2.0
// Runs of MIN:MAX nodes: they come, go and are lost, and the rest go on in a world of another size.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <list>
#include <memory>

#include "comm/transport/tcp/socket_address.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/standalone.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Agent {
  TestFolder folder;
  std::unique_ptr<RunningLauncher> launcher;

  std::string errors() const { return folder.text("stderr"); }
};

class Elastic : public ::testing::Test {
 protected:
  ~Elastic() override {
    for (const Agent& agent : agents_) {
      EXPECT_TRUE(eventually([&] { return processes_with(agent.folder.mark()).empty(); })) << "processes are left";
      EXPECT_TRUE(eventually([&] { return agent.folder.run_folders().empty(); })) << "a folder is left";
    }
  }

  Agent& start(const std::string& nodes, int workers, const Words& work) {
    Agent& agent = agents_.emplace_back();
    Words words = {"launch",
                   "--nnodes=" + nodes,
                   fmt::format("--nproc-per-node={}", workers),
                   "--rdzv-backend=c10d",
                   fmt::format("--rdzv-endpoint={}:{}", host_, port_),
                   "--rdzv-id=elastic",
                   fmt::format("--rdzv-conf=last_call_timeout={},join_timeout=30", last_call_),
                   "--max-restarts=0",
                   "train"};
    words.insert(words.end(), work.begin(), work.end());
    agent.launcher = std::make_unique<RunningLauncher>(agent.folder, words);
    return agent;
  }
  /// The first agent, once it listens.
  Agent& start_leader(const std::string& nodes, int workers, const Words& work) {
    Agent& leader = start(nodes, workers, work);
    EXPECT_TRUE(eventually([&] { return tcp_sockets_of(leader.launcher->pid()) > 0; }));
    return leader;
  }
  /// Waits until the worker of that world size and rank has come up in the agent's folder.
  static bool is_up(const Agent& agent, const std::string& mark) {
    return eventually([&] { return std::filesystem::exists(agent.folder.path() / mark); });
  }

  std::string host_ = "127.0.0.1";
  double last_call_ = 0.3;
  int port_ = free_tcp_port();
  std::list<Agent> agents_;
};

TEST_F(Elastic, GoesOnWithoutANodeThatIsLost) {
  const Words work = {"@0:mark=first", "@0:sleep", "mark=second", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 2, work);
  ASSERT_TRUE(is_up(other, "first.2")) << leader.errors() << other.errors();
  other.launcher->send(SIGKILL);
  EXPECT_EQ(other.launcher->wait(), -SIGKILL);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_THAT(leader.folder.text("env.0"), HasSubstr("\nWORLD_SIZE=1\n"));
  EXPECT_THAT(leader.errors(), HasSubstr("starting all workers again, which costs no restart"));
}

TEST_F(Elastic, TakesInANodeThatComesLater) {
  const Words work = {"@0:mark=first", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:3", 1, work);
  ASSERT_TRUE(is_up(leader, "first.0")) << leader.errors();
  Agent& late = start("1:3", 2, work);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_EQ(late.launcher->wait(), 0) << late.errors();
  EXPECT_THAT(late.folder.text("env.2"), HasSubstr("\nWORLD_SIZE=3\n"));
  EXPECT_THAT(late.folder.text("env.1"), HasSubstr("GROUP_RANK=1\n"));
}

TEST_F(Elastic, LetsANodeGoThatIsToldTo) {
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

TEST_F(Elastic, WorkersThatBlameTheLostNodeCostNoRestart) {
  // Rank 0 notices before its agent does.
  const Words work = {"@0:mark=first", "@0:0:await=go", "@0:0:exit=161", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "first.1")) << leader.errors() << other.errors();
  ASSERT_TRUE(is_up(leader, "first.0"));
  other.launcher->send(SIGSTOP);  // its agent says nothing, and its kernel answers
  leader.folder.touch("go");
  ASSERT_TRUE(eventually([&] { return processes_with(leader.folder.mark()).size() == 2; }));  // agent and guard
  other.launcher->send(SIGKILL);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_EQ(other.launcher->wait(), -SIGKILL);
}

TEST_F(Elastic, MeetsByIpv6AndByName) {
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

TEST_F(Elastic, GoesOnWithoutAnAgentThatIsStopped) {
  const Words work = {"@0:mark=first", "@0:sleep", "dump=env"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "first.1")) << leader.errors() << other.errors();
  other.launcher->send(SIGSTOP);
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_THAT(leader.errors(), HasSubstr("its host answers, and it has said nothing"));
  other.launcher->send(SIGCONT);
  EXPECT_EQ(other.launcher->wait(), 161) << other.errors();
}

TEST_F(Elastic, LetsANodeGoBeforeItHasBegun) {
  last_call_ = 3;
  Agent& leader = start_leader("2:3", 1, {"dump=env"});
  Agent& second = start("2:3", 1, {"dump=env"});
  ASSERT_TRUE(eventually([&] { return !second.folder.run_folders().empty(); }));  // it has come in, and waits
  second.launcher->send(SIGTERM);
  EXPECT_EQ(second.launcher->wait(), 143) << second.errors();
  Agent& third = start("2:3", 1, {"dump=env"});
  EXPECT_EQ(leader.launcher->wait(), 0) << leader.errors();
  EXPECT_EQ(third.launcher->wait(), 0) << third.errors();
  EXPECT_EQ(second.folder.text("env.1"), "");
  EXPECT_THAT(third.folder.text("env.1"), HasSubstr("\nWORLD_SIZE=2\n"));
}

TEST_F(Elastic, StopsWhileItLooksWhetherANodeIsLost) {
  // Rank 0 blames a peer that nothing is wrong with.
  const Words work = {"mark=up", "0:await=go", "0:exit=161", "sleep"};
  Agent& leader = start_leader("1:2", 1, work);
  Agent& other = start("1:2", 1, work);
  ASSERT_TRUE(is_up(other, "up.1")) << leader.errors() << other.errors();
  leader.folder.touch("go");
  ASSERT_TRUE(eventually([&] { return processes_with(other.folder.mark()).size() == 2; }));  // agent and guard
  leader.launcher->send(SIGTERM);
  EXPECT_EQ(leader.launcher->wait(), 143) << leader.errors();
  EXPECT_EQ(other.launcher->wait(), 143) << other.errors();
}

TEST_F(Elastic, APortThatAStrangerHasIsSaid) {
  const UniqueFd stranger = comm::tcp::listen_at({host_, static_cast<std::uint16_t>(port_)}, 1);
  Agent& agent = start("2", 1, {"exit=0"});
  EXPECT_EQ(agent.launcher->wait(), 3);
  EXPECT_THAT(agent.errors(), HasSubstr(fmt::format("cannot listen at {}:{}", host_, port_)));
  EXPECT_THAT(agent.errors(), HasSubstr("Address already in use"));
}

TEST_F(Elastic, ANameThatLeadsNowhereIsSaid) {
  host_ = "no..host";  // which no server is asked for
  Agent& agent = start("2", 1, {"exit=0"});
  EXPECT_TRUE(eventually([&] { return agent.errors().find("leads nowhere") != std::string::npos; })) << agent.errors();
  agent.launcher->send(SIGINT);
  EXPECT_EQ(agent.launcher->wait(), -SIGINT);
}

TEST_F(Elastic, AFailureIsAFailureStill) {
  const Words work = {"mark=first", "1:await=first.1", "1:exit=7", "sleep"};
  Agent& leader = start_leader("2:3", 1, work);
  Agent& other = start("2:3", 1, work);
  EXPECT_EQ(leader.launcher->wait(), 7) << leader.errors();
  EXPECT_EQ(other.launcher->wait(), 7);
}

}  // namespace
}  // namespace gradring::train
