// SPDX-License-Identifier: Apache-2.0
// Agents that are stopped for longer than the others wait for their heartbeats, and continue.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/train/launch/nodes/nodes_fixture.h"
#include "tests/train/launch/process_table.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;

class FrozenAgents : public Nodes {
 protected:
  /// Two agents with a worker each.
  struct Run {
    Agent& leader;
    Agent& other;
  };

  Run start_run(const std::string& nodes, const Words& work, const std::string& restarts) {
    const int port = free_tcp_port();
    const auto start = [&](int node) -> Agent& {
      Words options = {"--nnodes=" + nodes, "--max-restarts=" + restarts, "--rdzv-conf=timeout=30,last_call_timeout=5"};
      if (nodes == "2") {
        options.insert(options.end(), {"--master-addr=127.0.0.1", fmt::format("--master-port={}", port)});
        options.push_back(fmt::format("--node-rank={}", node));
      } else {
        options.insert(options.end(), {"--rdzv-backend=c10d", fmt::format("--rdzv-endpoint=127.0.0.1:{}", port)});
      }
      options.push_back(fmt::format("--rdzv-id={}", port));
      Agent& agent = start_agent(options, work);
      if (node == 0) {
        EXPECT_TRUE(eventually([&] { return tcp_sockets_of(agent.launcher->pid()) > 0; }));
      }
      return agent;
    };
    Run run{start(0), start(1)};
    run.leader.launcher->await_mark("up", 0);
    run.other.launcher->await_mark("up", 1);
    return run;
  }
  static bool says(const Agent& agent, const std::string& text) {
    return eventually([&] { return agent.errors().find(text) != std::string::npos; });
  }
  static void expect_end(const Run& run, const std::string& reason) {
    EXPECT_EQ(run.leader.launcher->wait(), 0) << run.leader.errors();
    EXPECT_EQ(run.other.launcher->wait(), 0) << run.other.errors();
    EXPECT_THAT(run.leader.errors(), HasSubstr(reason));
    EXPECT_THAT(run.other.folder.text("env.1"), HasSubstr("WORLD_SIZE=2\n"));
  }
};

/// All at the same time, because each takes 15 s.
TEST_F(FrozenAgents, CountAsLostNodesAndTakePartAgain) {
  // Ranks end together, as a training's do after SIGTERM to one of them.
  const Words ranks_end_together = {"@0:exit-on=15", "@0:mark=up", "@0:0:await=go",
                                    "@0:0:exit=143", "@0:1:sleep", "dump=env"};
  const Run fixed = start_run("2", ranks_end_together, "1"), elastic = start_run("1:2", ranks_end_together, "0");
  const Run other = start_run("2", {"@0:mark=up", "@0:sleep", "dump=env"}, "1");
  const Run final_attempt = start_run("2", {"mark=up", "sleep"}, "0");

  for (const Agent* frozen : {&fixed.leader, &elastic.leader, &other.other, &final_attempt.leader})
    frozen->launcher->send(SIGSTOP);
  for (const Run& run : {fixed, elastic}) {
    EXPECT_TRUE(says(run.other, "node 0 sent nothing for 15 s, but its host responds")) << run.other.errors();
    run.leader.folder.touch("go");
    EXPECT_TRUE(eventually([&] { return processes_with(run.leader.folder.mark()).size() == 2; }));  // agent and reaper
  }
  EXPECT_TRUE(says(other.leader, "lost node 1")) << other.leader.errors();
  EXPECT_EQ(final_attempt.other.launcher->wait(), 161) << "nothing would follow";
  for (const Agent* frozen : {&fixed.leader, &elastic.leader, &other.other, &final_attempt.leader})
    frozen->launcher->send(SIGCONT);

  expect_end(fixed, "restarting all workers: restart 1 of 1");
  EXPECT_THAT(fixed.leader.errors(), HasSubstr("heard nothing from this agent for 15 s and stopped its workers"));
  expect_end(elastic, "restarting all workers, which does not count as a restart");
  expect_end(other, "restarting all workers: restart 1 of 1");
  EXPECT_THAT(other.other.errors(), HasSubstr("this agent did not run for a while: joining the run again"));
  EXPECT_EQ(final_attempt.leader.launcher->wait(), 161) << final_attempt.leader.errors();
}

}  // namespace
}  // namespace gradring::train
