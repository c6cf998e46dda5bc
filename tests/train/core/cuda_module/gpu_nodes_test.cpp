// SPDX-License-Identifier: Apache-2.0
// GPUs of several machines: the control channel goes over TCP, gradients through NCCL. Here both are stand-ins, with
// the CPU as the GPU and an NCCL that joins processes through files; scripts/nodes_check.sh runs it between network
// namespaces.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/launch/nodes/recording_proxy.h"
#include "tests/train/support/text_of.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tests::joined;
using tests::ProgramEnd;
using tests::RunningProgram;
using tests::Words;
using tests::Workplace;

constexpr int kNodes = 3;
constexpr int kRanksOfNode[kNodes] = {2, 1, 1};
constexpr const char* kGpusOfNode[kNodes] = {"0,1", "2", "3"};

/// Also of a folder that is about to be removed.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code gone;
  for (auto entry = fs::directory_iterator(folder, gone); !gone && entry != fs::directory_iterator();
       entry.increment(gone))
    entries.push_back(entry->path());
  return entries;
}

/// Three nodes with folders of their own, as on separate machines, and one that has all ranks.
class GpuNodes : public ::testing::Test {
 protected:
  Words training(const Words& more) const {
    return joined(tests::short_training({"--device", "cuda", "--steps", "6", "--threads", "1"}), more);
  }
  ProgramEnd train_on_one_node(const Words& more) const {
    return one_.run(joined({"launch", "--nproc-per-node=4"}, training(more)), variables("0,1,2,3"));
  }
  /// How each node ended. Node 1 reaches the leader by `port_of_node_1`, if that is not the leader's port.
  std::vector<ProgramEnd> train_on_nodes(const Words& more, int port, int port_of_node_1) const {
    std::vector<std::unique_ptr<RunningProgram>> agents;
    for (int node = 0; node < kNodes; ++node) {
      const Words launch = {"launch",
                            "--nnodes=3",
                            fmt::format("--node-rank={}", node),
                            fmt::format("--nproc-per-node={}", kRanksOfNode[node]),
                            "--master-addr=127.0.0.1",
                            fmt::format("--master-port={}", node == 1 ? port_of_node_1 : port),
                            "--rdzv-conf=timeout=60"};
      agents.push_back(std::make_unique<RunningProgram>(
          nodes_[node].gradring(joined(launch, training(more)), variables(kGpusOfNode[node]))));
    }
    std::vector<ProgramEnd> ends;
    for (const auto& agent : agents) ends.push_back(agent->wait());
    return ends;
  }
  std::vector<ProgramEnd> train_on_nodes(const Words& more) const {
    const int port = train::free_tcp_port();
    return train_on_nodes(more, port, port);
  }
  /// How each of three ranks ended that only variables tell of each other, each alone on its node.
  std::vector<ProgramEnd> train_ranks(const Words& more) const {
    const int port = train::free_tcp_port();
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (int rank = 0; rank < kNodes; ++rank) {
      Workplace::Variables own = variables(std::to_string(rank));
      const Workplace::Variables place = {{"RANK", std::to_string(rank)},
                                          {"WORLD_SIZE", std::to_string(kNodes)},
                                          {"LOCAL_RANK", "0"},
                                          {"LOCAL_WORLD_SIZE", "1"},
                                          {"MASTER_ADDR", "127.0.0.1"},
                                          {"MASTER_PORT", std::to_string(port)},
                                          {"TORCHELASTIC_RUN_ID", "of all nodes"}};
      own.insert(own.end(), place.begin(), place.end());
      ranks.push_back(std::make_unique<RunningProgram>(nodes_[rank].gradring(training(more), own)));
    }
    std::vector<ProgramEnd> ends;
    for (const auto& rank : ranks) ends.push_back(rank->wait());
    return ends;
  }
  static std::string weights_in(const Workplace& place, const fs::path& run) {
    const json summary = tests::try_parse_json(tests::text_of(place.path(run / "summary.json")));
    return summary.is_object() ? summary.at("parameters_sha256").get<std::string>() : "no summary";
  }
  static Workplace::Variables variables(const std::string& gpus) {
    return {{"GRADRING_TOKEN", "token of this test"},
            {"CUDA_VISIBLE_DEVICES", gpus},
            {"LD_LIBRARY_PATH", GRADRING_STAND_IN_FOLDER}};
  }

  Workplace one_, nodes_[kNodes];
};

TEST_F(GpuNodes, TrainToTheSameWeightsAsOneNode) {
  for (const std::string zero : {"0", "3"}) {  // all-reduce, then reduce-scatter and all-gather
    SCOPED_TRACE("--zero " + zero);
    const fs::path run = "zero-" + zero;
    const Words sharded = {"--zero", zero, "--run-dir", run};
    const ProgramEnd alone = train_on_one_node(sharded);
    ASSERT_EQ(alone.code, 0) << alone.err;
    for (const ProgramEnd& end : train_on_nodes(sharded)) EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(weights_in(nodes_[0], run), weights_in(one_, run));
  }
}

TEST_F(GpuNodes, TrainWithoutALauncherOfOurs) {
  for (const ProgramEnd& end : train_ranks({})) EXPECT_EQ(end.code, 0) << end.err;
  const ProgramEnd alone = one_.run(joined({"launch", "--nproc-per-node=3"}, training({})), variables("0,1,2"));
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(weights_in(nodes_[0], "run"), weights_in(one_, "run"));
}

/// The ranks report failures through the store of rank 0, which may be the one that is missing.
TEST_F(GpuNodes, NameAKilledRankWithoutALauncherOfOurs) {
  for (const int lost : {0, 2}) {
    SCOPED_TRACE(lost);
    const std::string kill = fmt::format("kill:rank={},step=3", lost);
    const auto ends = train_ranks({"--run-dir", kill, "--timeout", "4s", "--inject", kill});
    for (int rank = 0; rank < kNodes; ++rank) {
      if (rank == lost) {
        EXPECT_EQ(ends[rank].code, 137) << ends[rank].err;
      } else {
        EXPECT_THAT(ends[rank].code, testing::AnyOf(161, 162)) << ends[rank].err;
        EXPECT_THAT(ends[rank].err, HasSubstr(fmt::format("rank {}", lost)));
      }
    }
  }
}

TEST_F(GpuNodes, SendHostValuesByTcpAndTheUniqueIdToAuthenticatedRanksOnly) {
  const int port = train::free_tcp_port();
  const tests::RecordingProxy proxy(port);
  for (const ProgramEnd& end : train_on_nodes({}, port, proxy.port())) EXPECT_EQ(end.code, 0) << end.err;

  std::set<std::string> names, removed;
  for (const json& message : proxy.messages()) {
    if (message.value("say", "") != "key") continue;
    if (message.at("value").is_null()) {
      removed.insert(message.at("name").get<std::string>());
      continue;
    }
    const auto bytes = message.at("value").get<std::vector<int>>();
    names.insert(message.at("name").get<std::string>());
    EXPECT_THAT(std::string(bytes.begin(), bytes.end()), Not(HasSubstr(nodes_[0].folder().path().string())))
        << message.at("name") << " holds the ncclUniqueId, which names the folder of rank 0's launcher";
  }
  EXPECT_THAT(names, Contains(AllOf(StartsWith("key-tcp"), HasSubstr("control"))).Times(5))
      << "where each rank listens, and rank 0's list of it";
  EXPECT_THAT(names, Contains(StartsWith("key-nccl")));
  EXPECT_THAT(removed, Contains(HasSubstr("memory")).Times(testing::Ge(4))) << "the ranks' sizes of an allocation";
  EXPECT_THAT(names, Not(Contains(AllOf(StartsWith("key-tcp"), HasSubstr("data")))));
}

TEST_F(GpuNodes, EndWithTheCodeOfARankThatIsKilled) {
  for (const int rank : {1, 3}) {  // beside another one, and alone on its node
    SCOPED_TRACE(rank);
    const std::string fault = fmt::format("kill:rank={},step=3", rank);
    const auto ends = train_on_nodes({"--run-dir", fault, "--timeout", "6s", "--inject", fault});
    for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, 137) << end.err;
    EXPECT_THAT(ends[0].err, HasSubstr(fmt::format("rank {} of 4", rank)));
    EXPECT_THAT(ends[0].err, HasSubstr("was killed by signal 9 (SIGKILL), the first to fail"));
  }
}

TEST_F(GpuNodes, NameARankThatIsStopped) {
  const auto ends = train_on_nodes({"--timeout", "4s", "--inject", "stop:rank=3,step=3"});
  for (const ProgramEnd& end : ends) EXPECT_EQ(end.code, 162) << end.err;
  EXPECT_THAT(ends[0].err, HasSubstr("for rank 3 "));
}

/// A NaN cannot change a step that was captured, and no step is where one process drives several GPUs.
TEST_F(GpuNodes, InjectANanWhereStepsAreNotGraphs) {
  const auto train = [&](const fs::path& run, const Words& more) {
    const Words words = {"--run-dir", run, "--precision", "fp16", "--inject", "nan:rank=0,step=3"};
    return one_.run(training(joined(words, more)), variables("0,1"));
  };
  const ProgramEnd graph = train("graph", {});
  EXPECT_EQ(graph.code, 2);
  EXPECT_THAT(graph.err, HasSubstr("add --cuda-graph off"));
  const std::pair<const char*, Words> possible[] = {{"off", {"--cuda-graph", "off"}},
                                                    {"devices", {"--data-parallel", "2"}}};
  for (const auto& [run, words] : possible) {
    SCOPED_TRACE(run);
    EXPECT_EQ(train(run, joined(words, {"--dry-run"})).code, 0);
    const ProgramEnd end = train(run, words);
    ASSERT_EQ(end.code, 0) << end.err;
    std::vector<int> skipped;
    for (const std::string& line : tests::lines_of(one_.path(fs::path(run) / "metrics.jsonl")))
      if (const json record = tests::parse_json(line); record.value("skipped", false))
        skipped.push_back(record["step"]);
    EXPECT_THAT(skipped, testing::ElementsAre(3));
  }
}

TEST_F(GpuNodes, ShareMemoryForHostValuesOnOneNode) {
  auto end = std::async(std::launch::async, [this] { return train_on_one_node({}); });
  std::set<std::string> keys;
  while (end.wait_for(std::chrono::milliseconds(2)) != std::future_status::ready)
    for (const fs::path& folder : entries_of(one_.folder().path()))
      for (const fs::path& key : entries_of(folder / "store")) keys.insert(key.filename());
  ASSERT_EQ(end.get().code, 0);
  EXPECT_THAT(keys, Contains(AllOf(StartsWith("key-shm"), HasSubstr("control"))).Times(5)) << "and rank 0's list";
  EXPECT_THAT(keys, Not(Contains(StartsWith("key-tcp"))));
}

}  // namespace
}  // namespace gradring
