// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/workers/host.h"

namespace gradring::train {

using Words = std::vector<std::string>;

/// One agent and its files.
struct Agent {
  TestFolder folder;
  std::unique_ptr<RunningLauncher> launcher;

  std::string errors() const { return launcher->errors(); }
};

/// Agents of one user on this host, which find the leader's token in a shared runtime folder.
class Nodes : public ::testing::Test {
 protected:
  ~Nodes() override {
    for (const Agent& agent : agents_) {
      EXPECT_TRUE(eventually([&] { return processes_with(agent.folder.mark()).empty(); })) << "processes are left";
      EXPECT_TRUE(eventually([&] { return agent.folder.run_folders().empty(); })) << "a folder is left";
    }
  }

  /// Starts `launch options... train work...`.
  Agent& start_agent(const Words& options, const Words& work, const Words& variables = {}) {
    Agent& agent = agents_.emplace_back();
    Words command = {"launch"};
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("train");
    command.insert(command.end(), work.begin(), work.end());
    Words environment = {"XDG_RUNTIME_DIR=" + runtime_.path().string()};
    environment.insert(environment.end(), variables.begin(), variables.end());
    agent.launcher = std::make_unique<RunningLauncher>(agent.folder, command, std::vector<int>(), environment);
    return agent;
  }
  /// Starts agent `node` of `nodes` with `workers` that perform `work`.
  Agent& start(int node, int nodes, int workers, const Words& work, const Words& options = {},
               const Words& variables = {}) {
    Words all = {fmt::format("--nnodes={}", nodes),
                 fmt::format("--node-rank={}", node),
                 fmt::format("--nproc-per-node={}", workers),
                 fmt::format("--master-port={}", port_),
                 "--master-addr=127.0.0.1",
                 "--rdzv-conf=timeout=30"};
    all.insert(all.end(), options.begin(), options.end());
    return start_agent(all, work, variables);
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
    for (const Agent& agent : agents_) text += agent.errors() + "--\n";
    return text;
  }

  tests::TempFolder runtime_{"/tmp"};
  int port_ = free_tcp_port();
  std::list<Agent> agents_;
};

}  // namespace gradring::train
