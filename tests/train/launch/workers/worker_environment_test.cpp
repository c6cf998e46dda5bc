// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/worker_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "kernels/base/error.h"
#include "tests/train/launch/running_launcher.h"
#include "train/records/metrics/event_reader.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using Table = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

WorkerEnvironment read(const Table& table) {
  return WorkerEnvironment::from_environment([&](const std::string& name) {
    const auto it = table.find(name);
    return it == table.end() ? std::nullopt : std::optional(it->second);
  });
}

std::string fault_of(const Table& table) try {
  read(table);
  return "";
} catch (const InvalidArgument& error) {
  return error.what();
}

TEST(WorkerEnvironment, DefaultsToAWorldOfOne) { EXPECT_EQ(read({}), WorkerEnvironment{}); }

TEST(WorkerEnvironment, RoundTripsThroughVariables) {
  const WorkerEnvironment place{.rank = 5,
                                .world_size = 8,
                                .local_rank = 1,
                                .local_world_size = 4,
                                .group_rank = 1,
                                .group_world_size = 2,
                                .role_rank = 3,
                                .role_world_size = 6,
                                .role_name = "trainer",
                                .master_addr = "node-1",
                                .master_port = 1234,
                                .run_id = "a run",
                                .restart_count = 2,
                                .max_restarts = 3,
                                .use_agent_store = true,
                                .error_file = "/tmp/e.json",
                                .store_path = "/tmp/store",
                                .progress_file = "/tmp/progress",
                                .node_address = "192.0.2.7",
                                .launcher = "gradring launch"};
  const Variables variables = place.to_variables();
  EXPECT_EQ(read(Table(variables.begin(), variables.end())), place);
}

TEST(WorkerEnvironment, AssumesOneNodeWithoutLocalRanks) {
  const auto place = read({{"RANK", "2"}, {"WORLD_SIZE", "4"}});
  EXPECT_EQ(place.local_rank, 2);
  EXPECT_EQ(place.local_world_size, 4);
  EXPECT_EQ(place.role_rank, 2);
}

TEST(WorkerEnvironment, RejectsInvalidVariables) {
  const Table good = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
  ASSERT_EQ(fault_of(good), "");
  const auto with = [&](const std::string& name, const std::string& value) {
    Table table = good;
    table[name] = value;
    return fault_of(table);
  };
  const auto without = [&](const std::string& name) {
    Table table = good;
    table.erase(name);
    return fault_of(table);
  };
  EXPECT_EQ(with("RANK", "2"), "RANK=2 is outside WORLD_SIZE=2: ranks go from 0 to 1");
  EXPECT_EQ(with("LOCAL_RANK", "7"), "LOCAL_RANK=7 is outside LOCAL_WORLD_SIZE=2: ranks go from 0 to 1");
  EXPECT_EQ(with("LOCAL_WORLD_SIZE", "3"), "LOCAL_WORLD_SIZE=3 is more than WORLD_SIZE=2");
  for (const char* garbage : {"", " 1", "1 ", "+1", "-1", "0x1", "1.0", "one", "99999999999"})
    EXPECT_THAT(with("RANK", garbage), HasSubstr("is not a whole number of 0 or more")) << garbage;
  EXPECT_EQ(with("WORLD_SIZE", "0"), "WORLD_SIZE='0' is not a whole number from 1 to 131072");
  EXPECT_EQ(kLargestWorld, kMostRanks) << "a larger run could not be read";
  EXPECT_EQ(with("WORLD_SIZE", "131073"), "WORLD_SIZE='131073' is not a whole number from 1 to 131072");
  EXPECT_EQ(with("MASTER_PORT", "65536"), "MASTER_PORT='65536' is not a whole number from 0 to 65535");
  EXPECT_THAT(with("TORCHELASTIC_RESTART_COUNT", "-1"), HasSubstr("TORCHELASTIC_RESTART_COUNT='-1'"));
  EXPECT_THAT(with("GROUP_RANK", "0"), HasSubstr("GROUP_RANK is set but GROUP_WORLD_SIZE is not"));
  EXPECT_THAT(without("WORLD_SIZE"), HasSubstr("RANK is set but WORLD_SIZE is not"));
  EXPECT_THAT(without("RANK"), HasSubstr("WORLD_SIZE is set but RANK is not"));
  EXPECT_THAT(without("LOCAL_WORLD_SIZE"), HasSubstr("LOCAL_RANK is set but LOCAL_WORLD_SIZE is not"));
  EXPECT_THAT(fault_of({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}),
              HasSubstr("LOCAL_RANK is set but RANK is not"));
}

TEST(WorkerEnvironment, DividesCoresByWorkers) {
  const auto threads = [](int workers, int cores) { return default_variables(workers, cores).front().second; };
  EXPECT_EQ(default_variables(1, 1).front().first, "OMP_NUM_THREADS");
  EXPECT_EQ(threads(1, 8), "8");
  EXPECT_EQ(threads(3, 8), "2");
  EXPECT_EQ(threads(16, 8), "1");
}

/// One command line, and the expected environment of its workers.
struct Case {
  Words options;
  Words variables;  ///< around the launcher
  Table expected;   ///< '#' stands for the rank
};

/// The environment that worker `rank` dumped.
Table found_by(const TestFolder& folder, int rank) {
  std::istringstream lines(folder.text("env." + std::to_string(rank)));
  Table table;
  for (std::string line; std::getline(lines, line);)
    if (const auto sign = line.find('='); sign != std::string::npos)
      table[line.substr(0, sign)] = line.substr(sign + 1);
  return table;
}

void expect_environment(const Case& one, int world_size) {
  TestFolder folder;
  Words words = {"launch", "--nproc-per-node", std::to_string(world_size)};
  words.insert(words.end(), one.options.begin(), one.options.end());
  words.insert(words.end(), {"train", "dump=env"});
  RunningLauncher launcher(folder, words, {}, one.variables);
  ASSERT_EQ(launcher.wait(), 0) << launcher.errors();
  for (int rank = 0; rank < world_size; ++rank) {
    Table found = found_by(folder, rank);
    for (auto [name, value] : one.expected) {
      std::ranges::replace(value, '#', static_cast<char>('0' + rank));
      EXPECT_EQ(found[name], value) << name << " of rank " << rank;
    }
    EXPECT_THAT(found["GRADRING_STORE"], HasSubstr(folder.path().string() + "/gradring-run-"));
    EXPECT_THAT(found["GRADRING_PROGRESS_FILE"], HasSubstr("progress_" + std::to_string(rank)));
    EXPECT_THAT(found["TORCHELASTIC_ERROR_FILE"], HasSubstr("error_" + std::to_string(rank)));
  }
}

TEST(LaunchedWorkers, HaveTheExpectedEnvironment) {
  const Table common = {{"RANK", "#"},
                        {"LOCAL_RANK", "#"},
                        {"ROLE_RANK", "#"},
                        {"GROUP_RANK", "0"},
                        {"GROUP_WORLD_SIZE", "1"},
                        {"TORCHELASTIC_RESTART_COUNT", "0"},
                        {"TORCHELASTIC_MAX_RESTARTS", "0"},
                        {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
  const std::vector<Case> cases = {
      {{}, {}, {{"MASTER_ADDR", "127.0.0.1"}, {"ROLE_NAME", "default"}, {"TORCHELASTIC_RUN_ID", "none"}}},
      {{}, {"MASTER_PORT=5000"}, {{"MASTER_PORT", "5000"}}},
      {{"--standalone"}, {}, {{"MASTER_ADDR", "localhost"}}},
      {{"--master-addr", "::1", "--master_port=4000"}, {}, {{"MASTER_ADDR", "::1"}, {"MASTER_PORT", "4000"}}},
      {{"--rdzv-id=x", "--role", "actor"}, {}, {{"TORCHELASTIC_RUN_ID", "x"}, {"ROLE_NAME", "actor"}}},
      {{}, {"PET_MASTER_PORT=5000", "PET_ROLE=r"}, {{"MASTER_PORT", "5000"}, {"ROLE_NAME", "r"}}},
      {{"--master-port", "4000"}, {"PET_MASTER_PORT=5000"}, {{"MASTER_PORT", "4000"}}},
      {{}, {"OMP_NUM_THREADS=7"}, {{"OMP_NUM_THREADS", "7"}}},
      {{}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING=3"}, {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"}}},
      {{}, {}, {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}}},
      {{}, {"RANK=9", "WORLD_SIZE=1", "LOCAL_RANK=4"}, {}},  // overridden for the workers
      {{}, {"MINE=kept"}, {{"MINE", "kept"}}},
      {{}, {"CUDA_VISIBLE_DEVICES=5"}, {{"CUDA_VISIBLE_DEVICES", "5"}}},
      {{"--devices=4,2,7"}, {"CUDA_VISIBLE_DEVICES=5"}, {{"CUDA_VISIBLE_DEVICES", "4,2,7"}}},
      {{"--virtual-local-rank"}, {}, {{"CUDA_VISIBLE_DEVICES", "#"}, {"LOCAL_RANK", "0"}}},
      {{"--max-restarts=4"}, {}, {{"TORCHELASTIC_MAX_RESTARTS", "4"}}},
      {{},
       {"TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM"},
       {{"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"}}},
      {{"--signals-to-handle=SIGTERM,SIGUSR1"}, {}, {{"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGUSR1"}}},
      {{"--rdzv-backend=c10d", "--rdzv-id=q"}, {}, {{"MASTER_ADDR", "localhost"}, {"TORCHELASTIC_RUN_ID", "q"}}},
      {{"--rdzv-endpoint=h:12"}, {}, {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "12"}}},
  };
  for (Case one : cases)
    for (const int world_size : {1, 3}) {
      SCOPED_TRACE(testing::PrintToString(one.options) + testing::PrintToString(one.variables));
      one.expected.insert(common.begin(), common.end());
      for (const char* size : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"})
        one.expected[size] = std::to_string(world_size);
      expect_environment(one, world_size);
    }
}

}  // namespace
}  // namespace gradring::train
