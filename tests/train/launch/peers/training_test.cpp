// SPDX-License-Identifier: Apache-2.0
// `gradring train` under other launchers computes the same numbers as under ours.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/support/text_of.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

/// One thread, because launchers bind to different numbers of cores.
const Words kOneNodeTraining = tests::short_training({"--threads", "1", "--steps", "4"});

/// The losses, bit by bit, and the weights of a finished run.
struct Outcome {
  std::vector<double> losses;
  std::string weights;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const Workplace& place) {
  Outcome outcome;
  for (const std::string& line : tests::records_of(place.path("run/metrics.jsonl")))
    outcome.losses.push_back(tests::parse_json(line).at("loss"));
  const json summary = tests::try_parse_json(tests::text_of(place.path("run/summary.json")));
  if (summary.is_object()) outcome.weights = summary.at("parameters_sha256");
  return outcome;
}

Outcome by_our_launcher(int ranks) {
  const Workplace place;
  const ProgramEnd end = place.run(joined({"launch", "--nproc-per-node", std::to_string(ranks)}, kOneNodeTraining));
  EXPECT_EQ(end.code, 0) << end.err;
  return outcome_of(place);
}

/// `command... gradring train ...`, in the folder.
ProgramEnd run_by(const Words& command, const Workplace& place, const Words& training,
                  Workplace::Variables variables = {}) {
  return tests::run_program({.command = joined(command, joined({GRADRING_BINARY}, training)),
                             .folder = place.folder().path(),
                             .variables = std::move(variables)});
}

std::string program_along_path(const std::string& name) {
  std::istringstream folders(train::system_variable("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::string path = folder + "/" + name; ::access(path.c_str(), X_OK) == 0) return path;
  return "";
}

class UnderTorchrun : public testing::Test {
 protected:
  void SetUp() override {
    const auto search = train::search_python_with_torch();
    if (!search.python) GTEST_SKIP() << search.to_string();
    torchrun_ = {*search.python,
                 "-m",
                 "torch.distributed.run",
                 "--no_python",
                 "--nproc_per_node=2",
                 "--monitor_interval=0.1",
                 "-r",
                 "1",
                 "-t",
                 "1"};
  }

  Words torchrun_;
};

TEST_F(UnderTorchrun, TrainsToTheSameWeights) {
  const Outcome expected = by_our_launcher(2);
  const std::string port = std::to_string(train::free_tcp_port());
  const std::vector<Words> ways = {{"--master_port", port},
                                   {"--standalone"},
                                   {"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:" + port, "--rdzv_id=q"}};
  for (const Words& way : ways) {
    SCOPED_TRACE(testing::PrintToString(way));
    const Workplace place;
    const ProgramEnd end = run_by(joined(torchrun_, way), place, kOneNodeTraining);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(outcome_of(place), expected);
    EXPECT_THAT(tests::text_of(place.path("run/logs/rank_1.log")), HasSubstr("started by torchrun"));
  }
}

TEST_F(UnderTorchrun, ReportsTheErrorMessage) {
  const Workplace place;
  const Words training = joined(kOneNodeTraining, {"--data-dir", "nowhere"});
  const ProgramEnd end = run_by(joined(torchrun_, {"--standalone"}), place, training);
  EXPECT_EQ(end.code, 1);  // for any failure
  EXPECT_THAT(end.err, HasSubstr("Root Cause"));
  EXPECT_THAT(end.err, HasSubstr("nowhere"));
}

class UnderMpirun : public testing::Test {
 protected:
  void SetUp() override {
    mpirun_ = program_along_path("mpirun");
    if (mpirun_.empty()) GTEST_SKIP() << "no mpirun along PATH: apt-get install openmpi-bin";
  }
  ProgramEnd run(int ranks, const Workplace& place, const Words& words) const {
    return run_by({mpirun_, "--oversubscribe", "-n", std::to_string(ranks)}, place, words,
                  {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  }

 private:
  std::string mpirun_;
};

TEST_F(UnderMpirun, TrainsToTheSameLosses) {
  for (const int ranks : {1, 2, 4}) {
    SCOPED_TRACE(ranks);
    const Workplace place;
    const ProgramEnd end = run(ranks, place, kOneNodeTraining);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(outcome_of(place), by_our_launcher(ranks));
    EXPECT_THAT(tests::text_of(place.path("run/logs/rank_0.log")), HasSubstr("started by mpirun"));
  }
}

TEST_F(UnderMpirun, BenchmarksAreOfItsRanks) {
  const Workplace place;
  for (const Words& benchmark : {Words{"bench", "allreduce", "-n", "3", "--sizes", "4K"},
                                 Words{"bench", "step", "--steps", "2", "--warmup", "0", "--batch-size", "8"}}) {
    const ProgramEnd end = run(3, place, benchmark);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, HasSubstr("3 ranks over shm"));
    EXPECT_EQ(end.out.find("3 ranks over"), end.out.rfind("3 ranks over")) << "one run, and not one of each rank";
  }
}

}  // namespace
}  // namespace gradring
