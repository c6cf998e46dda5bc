// SPDX-License-Identifier: Apache-2.0
// Runs of MIN:MAX nodes: they come, go and are lost, and the rest go on in a world of another size.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <list>
#include <memory>

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
                   "--rdzv-conf=last_call_timeout=0.3,join_timeout=30",
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
    EXPECT_THAT(other.folder.text("env.1"), HasSubstr("MASTER_ADDR=" + host + "\n"));
  }
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
