// SPDX-License-Identifier: Apache-2.0
// Workers of other launchers, in the environments that these document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "kernels/base/error.h"
#include "train/launch/workers/worker_environment.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using Table = std::map<std::string, std::string>;

WorkerEnvironment read(const Table& table) {
  return WorkerEnvironment::from_environment([&](const std::string& name) {
    const auto it = table.find(name);
    return it == table.end() ? std::nullopt : std::optional(it->second);
  });
}

Table with(Table table, const Table& more) {
  for (const auto& [name, value] : more) table[name] = value;
  return table;
}

std::string fault_of(const Table& table) try {
  read(table);
  return "";
} catch (const InvalidArgument& error) {
  return error.what();
}

const Table kTorchrun = {{"RANK", "3"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"TORCHELASTIC_RUN_ID", "t"},
                         {"MASTER_ADDR", "a"}};
const Table kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"OMPI_COMM_WORLD_NODE_RANK", "0"},
                        {"OMPI_UNIVERSE_SIZE", "4"},
                        {"PMIX_RANK", "2"},
                        {"PMIX_NAMESPACE", "2087256065"}};
const Table kHydra = {{"PMI_RANK", "1"},
                      {"PMI_SIZE", "3"},
                      {"PMI_PORT", "host:41234"},
                      {"MPI_LOCALRANKID", "1"},
                      {"MPI_LOCALNRANKS", "3"}};
/// Task 4 of six on three nodes: 2, 2 and 2.
const Table kSlurm = {{"SLURM_JOB_ID", "123456"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "4"},
                      {"SLURM_NTASKS", "6"},
                      {"SLURM_STEP_NUM_TASKS", "6"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_STEP_NUM_NODES", "3"},
                      {"SLURM_NNODES", "3"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                      {"SLURM_STEP_NODELIST", "gpu[07-09]"},
                      {"SLURM_JOB_NAME", "job"}};
const Table kPod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                    {"RANK", "2"},
                    {"WORLD_SIZE", "3"},
                    {"MASTER_ADDR", "job-master-0"},
                    {"MASTER_PORT", "23456"},
                    {"PYTHONUNBUFFERED", "1"}};

/// Rank 2 of four, the first on the second of two nodes.
WorkerEnvironment of_open_mpi(const char* address, int port, const char* source, const char* run_id) {
  return {.rank = 2,
          .world_size = 4,
          .local_rank = 0,
          .local_world_size = 2,
          .group_rank = 1,
          .group_world_size = 2,
          .role_rank = 2,
          .role_world_size = 4,
          .master_addr = address,
          .master_port = port,
          .master_source = source,
          .run_id = run_id,
          .launcher = "mpirun"};
}

struct Case {
  const char* name;
  Table table;
  WorkerEnvironment expected;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"alone", {{"HOME", "/"}}, {}},
      {"torchrun",
       kTorchrun,
       {.rank = 3,
        .world_size = 4,
        .local_rank = 1,
        .local_world_size = 2,
        .role_rank = 3,
        .role_world_size = 4,
        .master_addr = "a",
        .run_id = "t",
        .launcher = "torchrun"}},
      {"by hand",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}},
       {.rank = 1,
        .world_size = 2,
        .local_rank = 1,
        .local_world_size = 2,
        .role_rank = 1,
        .role_world_size = 2,
        .launcher = "hand (RANK and WORLD_SIZE)"}},
      {"by hand on two nodes",
       {{"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"MASTER_ADDR", "a"},
        {"MASTER_PORT", "7"},
        {"GRADRING_RENDEZVOUS_PORT", "8"}},
       {.rank = 1,
        .world_size = 2,
        .group_rank = 1,
        .group_world_size = 2,
        .role_rank = 1,
        .role_world_size = 2,
        .master_addr = "a",
        .master_port = 7,
        .rendezvous_port = 8,
        .launcher = "hand (RANK and WORLD_SIZE)"}},
      {"Open MPI, two nodes", kOpenMpi, of_open_mpi("", 11556, "", "2087256065")},
      {"Open MPI 4, two nodes, its URI",
       with(kOpenMpi,
            {{"OMPI_MCA_orte_hnp_uri", "2087256064.0;tcp://10.98.0.2,10.1.0.2:38283;tcp6://[fd00::2]:38284"}}),
       of_open_mpi("10.98.0.2,10.1.0.2,fd00::2", 11556, "OMPI_MCA_orte_hnp_uri", "2087256065")},
      {"Open MPI 5, two nodes", with(kOpenMpi, {{"PMIX_NAMESPACE", "prterun-node-1-4711@1"}}),
       of_open_mpi("node-1", 24829, "PMIX_NAMESPACE", "prterun-node-1-4711@1")},
      {"Open MPI with an address", with(kOpenMpi, {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "7"}}),
       of_open_mpi("m", 7, "", "2087256065")},
      {"MPICH",
       kHydra,
       {.rank = 1,
        .world_size = 3,
        .local_rank = 1,
        .local_world_size = 3,
        .role_rank = 1,
        .role_world_size = 3,
        .run_id = "host:41234",
        .launcher = "mpirun"}},
      {"MPICH, two nodes",
       with(kHydra, {{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}),
       {.rank = 1,
        .world_size = 3,
        .group_rank = 1,
        .group_world_size = 3,
        .role_rank = 1,
        .role_world_size = 3,
        .master_addr = "",
        .run_id = "host:41234",
        .launcher = "mpirun"}},
      {"Slurm",
       kSlurm,
       {.rank = 4,
        .world_size = 6,
        .local_rank = 0,
        .local_world_size = 2,
        .group_rank = 2,
        .group_world_size = 3,
        .role_rank = 4,
        .role_world_size = 6,
        .master_addr = "gpu07",
        .master_port = 20510,
        .master_source = "SLURM_STEP_NODELIST",
        .run_id = "slurm-123456.0",
        .launcher = "srun"}},
      {"Slurm, uneven, requeued",
       with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x2),3"},
                     {"SLURM_LOCALID", "2"},
                     {"SLURM_RESTART_COUNT", "1"},
                     {"SLURM_PROCID", "5"},
                     {"SLURM_STEP_NODELIST", "a,b[1-2]"}}),
       {.rank = 5,
        .world_size = 6,
        .local_rank = 2,
        .local_world_size = 3,
        .group_rank = 2,
        .group_world_size = 3,
        .role_rank = 5,
        .role_world_size = 6,
        .master_addr = "a",
        .master_port = 20510,
        .master_source = "SLURM_STEP_NODELIST",
        .run_id = "slurm-123456.0.1",
        .restart_count = 1,
        .launcher = "srun"}},
      {"PyTorchJob",
       kPod,
       {.rank = 2,
        .world_size = 3,
        .group_rank = 2,
        .group_world_size = 3,
        .role_rank = 2,
        .role_world_size = 3,
        .master_addr = "job-master-0",
        .master_port = 23456,
        .launcher = "PyTorchJob"}},
  };
  return all;
}

TEST(Detect, ReadsTheEnvironmentOfEveryLauncher) {
  for (const Case& one : cases()) {
    auto found = read(one.table);
    found.rank_variables.clear();
    EXPECT_EQ(found, one.expected) << one.name << ": rank " << found.rank << ", local " << found.local_rank << " of "
                                   << found.local_world_size << ", node " << found.group_rank << ", "
                                   << found.master_addr << ":" << found.master_port << ", by " << found.launcher;
  }
}

TEST(Detect, NamesTheVariablesWithoutWhichAProcessRunsAlone) {
  for (const Case& one : cases()) {
    Table rest = one.table;
    for (const std::string& name : read(one.table).rank_variables)
      EXPECT_EQ(rest.erase(name), 1u) << one.name << ": " << name << " is not set";
    EXPECT_EQ(read(rest), WorkerEnvironment()) << one.name;
  }
}

TEST(Detect, PrefersLaunchersInOrder) {
  EXPECT_EQ(read(with(with(kTorchrun, kOpenMpi), with(kSlurm, {{"KUBERNETES_SERVICE_HOST", "x"}}))).launcher,
            "torchrun");
  EXPECT_EQ(read(with(kOpenMpi, kSlurm)).launcher, "mpirun");
  EXPECT_EQ(read(with(kOpenMpi, kPod)).launcher, "mpirun");
  EXPECT_EQ(read(with(kSlurm, kPod)).launcher, "srun");
}

TEST(Detect, PrefersSlurmToItsPmi) {
  EXPECT_EQ(read(with(kSlurm, {{"PMI_RANK", "4"}, {"PMI_SIZE", "6"}})).launcher, "srun");
}

TEST(Detect, TakesTheRankOfTheStepWhereABatchScriptExportsAnother) {
  const std::pair<Table, Table> steps[] = {
      {kSlurm, {{"WORLD_SIZE", "6"}}}, {kOpenMpi, {{"WORLD_SIZE", "4"}}}, {kHydra, {{"WORLD_SIZE", "3"}}}};
  for (const auto& [step, world] : steps) {
    const WorkerEnvironment alone = read(step);
    for (const Table& exported :
         {world, with(world, {{"RANK", "0"}}), Table{{"RANK", "0"}}, Table{{"WORLD_SIZE", "9"}}})
      EXPECT_EQ(read(with(step, exported)), alone) << alone.launcher;
  }
  const WorkerEnvironment own = read(with(kSlurm, {{"RANK", "11"}, {"WORLD_SIZE", "12"}, {"MASTER_ADDR", "a"}}));
  EXPECT_EQ(own.rank, 11) << "two ranks of each task, started by hand";
  EXPECT_EQ(read(with(kSlurm, kTorchrun)).launcher, "torchrun") << "an agent for each task";
  EXPECT_THAT(fault_of({{"WORLD_SIZE", "2"}, {"SLURM_JOB_ID", "7"}}),
              HasSubstr("WORLD_SIZE is set but RANK is not: unset WORLD_SIZE, which a batch script may have exported"));
}

TEST(Detect, IgnoresSlurmBatchScripts) {
  Table script = kSlurm;
  script.erase("SLURM_STEP_ID");
  EXPECT_EQ(read(script), WorkerEnvironment{});
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}})), WorkerEnvironment{});  // "batch"
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}})), WorkerEnvironment{});
}

TEST(Detect, ParsesTheFirstHostOfSlurmsList) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"one", "one"},    {"one,two", "one"},
                                                                  {"n[1-3]", "n1"},  {"n[003,007-9]", "n003"},
                                                                  {"n[5]", "n5"},    {"n[1-2].cluster,m", "n1.cluster"},
                                                                  {"a,b[1-2]", "a"}, {"r1-n[08-09],r2-n1", "r1-n08"}};
  for (const auto& [list, first] : cases)
    EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_NODELIST", list}})).master_addr, first) << list;
}

TEST(Detect, GivesJobsAndStepsPortsOfTheirOwn) {
  const int first = read(kSlurm).master_port;
  for (const Table& other : {Table{{"SLURM_JOB_ID", "123457"}}, Table{{"SLURM_STEP_ID", "1"}}}) {
    const int port = read(with(kSlurm, other)).master_port;
    EXPECT_NE(port, first);
    EXPECT_GE(port, 10'000);
    EXPECT_LT(port, 32'768) << "outgoing connections of any process have the ports from here on";
  }
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_RESTART_COUNT", "1"}})).master_port, first);
}

TEST(Detect, TakesRanksByHandAsOfOneMachineWithALoopbackAddress) {
  const Table hand = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "7"}};
  for (const char* address : {"localhost", "127.0.0.1", "127.0.1.1", "::1", "[::1]", "localhost.localdomain"})
    EXPECT_FALSE(read(with(hand, {{"MASTER_ADDR", address}})).spans_nodes()) << address;
  EXPECT_FALSE(read(hand).spans_nodes());
  EXPECT_TRUE(read(with(hand, {{"MASTER_ADDR", "10.0.0.1"}})).spans_nodes());
  EXPECT_TRUE(read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}).spans_nodes())
      << "MASTER_PORT has a default";
  EXPECT_FALSE(read(with(hand, {{"MASTER_ADDR", "a"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}})).spans_nodes());
}

TEST(Detect, ReadsAnyUriOfOpenMpi) {
  for (const char* uri : {"", ";", "x", "://", "tcp://", "tcp://:", "1.0;tcp://a:1;;", "1.0;tcp://a", "tcp6://[::1"})
    EXPECT_NO_THROW(read(with(kOpenMpi, {{"OMPI_MCA_orte_hnp_uri", uri}}))) << uri;
  for (const char* name : {"", "prte", "prte-", "prterun-1", "prterun--", "slurm.pmix.1.0"})
    EXPECT_EQ(read(with(kOpenMpi, {{"PMIX_NAMESPACE", name}})).master_addr, "") << name;
}

TEST(Detect, ErrorNamesTheInvalidVariable) {
  EXPECT_THAT(fault_of(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "4"}})),
              HasSubstr("OMPI_COMM_WORLD_RANK=4 is outside"));
  EXPECT_THAT(fault_of(with(kHydra, {{"PMI_SIZE", "x"}})), HasSubstr("PMI_SIZE='x'"));
  EXPECT_THAT(fault_of(with(kSlurm, {{"SLURM_PROCID", "6"}})), HasSubstr("SLURM_PROCID=6 is outside"));
  EXPECT_THAT(fault_of(with(kSlurm, {{"SLURM_LOCALID", "2"}})), HasSubstr("SLURM_LOCALID=2 of node 2 is outside"));
  EXPECT_THAT(fault_of(with(kTorchrun, {{"GRADRING_RENDEZVOUS_PORT", "0"}})),
              HasSubstr("GRADRING_RENDEZVOUS_PORT='0'"));
  EXPECT_THAT(fault_of(with(kPod, {{"RANK", "3"}})), HasSubstr("RANK=3 is outside WORLD_SIZE=3"));
  for (const char* tasks : {"", "x", "2(x", "2(x3", "(x3)", ",", "2(x9999999999)"})
    EXPECT_NO_THROW(fault_of(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", tasks}}))) << tasks;
}

}  // namespace
}  // namespace gradring::train
