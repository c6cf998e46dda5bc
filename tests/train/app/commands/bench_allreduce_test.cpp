// SPDX-License-Identifier: Apache-2.0
// gradring bench allreduce, by the program that was built. How fast it is is not asked here.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::Words;

Words bench(const Words& more) { return tests::joined({"bench", "allreduce", "-n", "3", "-w", "1"}, more); }

TEST(BenchAllReduce, MeasuresAndChecksALadderOfSizes) {
  const tests::Workplace place;
  const auto end = place.run(
      bench({"-b", "1K", "-e", "16K", "-f", "4", "--nprocs", "3", "-I", "-J", "table.json", "--plot", "plot.svg"}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("commit"), HasSubstr("3 ranks"), HasSubstr("busbw"), HasSubstr("i_p99"),
                             HasSubstr("# Out of bounds values : 0 OK"), HasSubstr("# Avg bus bandwidth")));
  const auto table = tests::parse_json(tests::text_of(place.path("table.json")));
  EXPECT_EQ(table.at("ranks"), 3);
  ASSERT_EQ(table.at("rows").size(), 3);
  EXPECT_EQ(table.at("rows").at(1).at("size"), 4096);
  for (const auto& row : table.at("rows")) {
    EXPECT_EQ(row.at("wrong"), 0);
    EXPECT_EQ(row.at("in_place_microseconds").at("count"), 3);
    EXPECT_GT(row.at("busbw_gb_s"), 0);
  }
  const std::string plot = tests::text_of(place.path("plot.svg"));
  for (const char* const dot : {R"(cx="0.00%")", R"(cx="50.00%")", R"(cx="100.00%")"})
    EXPECT_THAT(plot, HasSubstr(dot)) << "equal factors are equally far apart";
}

TEST(BenchAllReduce, RunsUnderTheLauncherInEveryTypeAndAlgorithm) {
  const tests::Workplace place;
  for (const char* type : {"float", "half", "bfloat16", "int32", "int64"})
    for (const char* algorithm : {"ring", "direct"}) {
      const Words words = bench({"--sizes", "4K,10001", "-d", type, "-a", algorithm, "--fresh"});
      const auto end = place.run(tests::launched(words));
      EXPECT_EQ(end.code, 0) << end.err;
      EXPECT_THAT(end.out, HasSubstr("0 OK")) << type << ", " << algorithm;
    }
}

TEST(BenchAllReduce, TakesTurnsWithAPeer) {
  const tests::Workplace place;
  const auto python = place.path("python");
  std::ofstream(python) << "#!/bin/sh\n"
                           "case \"$2\" in *init_process_group*) ;; *) echo torch 9.9; exit;; esac\n"
                           "echo ready gloo of torch 9.9\n"
                           "while read line; do echo 1 2 3; done\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const auto end = place.run(bench({"--sizes", "4K", "--compare", "gloo", "-J", "table.json"}),
                             {{"GRADRING_PYTHON", python.string()}});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("in turns with gloo of torch 9.9"), HasSubstr("ratio")));
  const auto row = tests::parse_json(tests::text_of(place.path("table.json"))).at("rows").at(0);
  EXPECT_EQ(row.at("gloo_microseconds").at("median"), 2e6);
  EXPECT_GT(row.at("ratio"), 0);
}

TEST(BenchAllReduce, MeasuresTheCollectivesOfHostValues) {
  const tests::Workplace place;
  for (const char* transport : {"shm", "tcp", "in-process"})
    for (const auto& [collective, bytes, wrong] :
         {std::tuple("agreement", 16, "0 OK"), {"barrier", 0, "not checked"}}) {
      SCOPED_TRACE(collective);
      const auto end = place.run(
          bench({"--collective", collective, "--comm", transport, "--nprocs", "3", "-J", "table.json", "--force"}));
      EXPECT_EQ(end.code, 0) << end.err;
      EXPECT_THAT(end.out, AllOf(HasSubstr(std::string("3 ranks over ") + transport + ", " + collective),
                                 HasSubstr(std::string("# Out of bounds values : ") + wrong)));
      const auto table = tests::parse_json(tests::text_of(place.path("table.json")));
      EXPECT_EQ(table.at("collective"), collective);
      EXPECT_EQ(table.at("rows").at(0).at("size"), bytes);
      EXPECT_EQ(table.at("measurements").at(0).at("key").at("collective"), collective);
    }
}

TEST(BenchAllReduce, RejectsOptionsThatDoNotApplyToTheCollective) {
  const tests::Workplace place;
  const auto refused = [&](const Words& words, const char* message) {
    const auto end = place.run(bench(words));
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, HasSubstr(message));
  };
  refused({"--collective", "barrier", "--sizes", "4K"}, "--sizes does not apply to --collective barrier");
  refused({"--collective", "barrier", "-c", "1"}, "--check does not apply to --collective barrier");
  refused({"--collective", "agreement", "-e", "1M"}, "--maxbytes does not apply to --collective agreement");
  refused({"--collective", "agreement", "--device", "cuda"}, "--device does not apply");
  EXPECT_EQ(place.run(bench({"--collective", "agreement", "-c", "0"})).code, 0);
}

TEST(BenchAllReduce, RejectsWhatItCannotMeasure) {
  const tests::Workplace place;
  EXPECT_EQ(place.run(bench({"-b", "2M", "-e", "1M"})).code, 2);
  EXPECT_EQ(place.run(bench({"-b", "2X"})).code, 2);
  EXPECT_EQ(place.run(bench({"-d", "uint8"})).code, 2);
  const auto too_many = place.run(bench({"-b", "0", "-e", "1G", "-i", "1K", "--list"}));
  EXPECT_EQ(too_many.code, 2);
  EXPECT_THAT(too_many.err, HasSubstr("--stepbytes is 1024, which is more than 10000 sizes from 0 to 1073741824"));
  EXPECT_EQ(place.run(bench({"-d", "half", "--compare", "gloo"})).code, 2);
}

// Under any launcher, of which Open MPI stands here for those that do not set RANK.
TEST(BenchAllReduce, IsARankWhereALauncherSaysSo) {
  const tests::Workplace place;
  const tests::Workplace::Variables by_hand = {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                                    by_mpirun = {{"OMPI_COMM_WORLD_RANK", "0"},
                                                 {"OMPI_COMM_WORLD_SIZE", "1"},
                                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  for (const auto& variables : {by_hand, by_mpirun}) {
    const auto end = place.run(bench({"--sizes", "4K"}), variables);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_THAT(end.out, HasSubstr("# 1 ranks over shm"));
    const auto more = place.run(bench({"--nprocs", "3"}), variables);
    EXPECT_EQ(more.code, 2);
    EXPECT_THAT(more.err, HasSubstr("--nprocs is 3, but there are 1 ranks, started by"));
    EXPECT_EQ(place.run(bench({"--comm", "in-process"}), variables).code, 2);
  }
}

TEST(BenchAllReduce, SaysWhereThereIsNoPython) {
  const tests::Workplace place;
  const auto end = place.run(bench({"--sizes", "4K", "--compare", "gloo"}), {{"PATH", "/nowhere"}});
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, HasSubstr("GRADRING_PYTHON"));
}

}  // namespace
}  // namespace gradring
