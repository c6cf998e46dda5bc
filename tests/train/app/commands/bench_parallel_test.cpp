// SPDX-License-Identifier: Apache-2.0
// bench parallel and bench scaling, as processes of the program. Times are not checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::ProgramEnd;
using tests::Workplace;

/// A row is two trainings, so there are two dozen programs to start.
ProgramEnd run_patiently(const Workplace& place, const tests::Words& words) {
  return tests::RunningProgram(place.gradring(words)).wait(std::chrono::minutes(10));
}

TEST(BenchParallel, TrainsEveryLayoutAlike) {
  const Workplace place;
  const ProgramEnd end =
      run_patiently(place, {"bench", "parallel", "--dataset", "mnist", "--data-dir", "data", "--steps", "2",
                            "--global-batch", "24", "--accumulate", "3", "--no-pytorch", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("scaling"), HasSubstr("DataParallel"), HasSubstr("ZeRO 3")));
  EXPECT_THAT(end.err, HasSubstr("round 1 of 1: DDP"));
  const auto json = tests::parse_json(tests::text_of(place.path("bench.json")));
  EXPECT_EQ(json.at("benchmark"), "parallel");
  const auto& rows = json.at("rows");
  std::set<std::string> names;
  double first_peak = 0;
  for (const auto& row : rows) {
    const std::string name = row.at("name");
    SCOPED_TRACE(name);
    names.insert(name);
    // 16 bits round to 2^-11 in every product.
    const double bound = row.at("precision") == "fp32" ? 1e-4 : 2e-2;
    ASSERT_EQ(row.at("losses").size(), 2u);
    for (int step = 0; step < 2; ++step)
      EXPECT_NEAR(row.at("losses").at(step).get<double>(), rows.at(0).at("losses").at(step).get<double>(), bound);
    EXPECT_GT(row.at("samples_per_second"), 0);
    EXPECT_GT(row.at("resident_bytes"), row.at("peak_bytes"));
    const double planned = row.at("planned_bytes");
    EXPECT_NEAR(row.at("peak_bytes").get<double>(), planned, 0.05 * planned);
    if (name == "one process") first_peak = row.at("peak_bytes");
    EXPECT_EQ(row.at("further_device_bytes").get<double>() > 0, name.starts_with("DataParallel"));
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"one process", "one process, fp16", "one process, accumulate 3",
                                            "one process, 2 threads", "DataParallel", "DDP", "DDP, fp16", "ZeRO 1",
                                            "ZeRO 2", "ZeRO 3"}));
  EXPECT_GT(first_peak, 0);
}

std::vector<std::string> lines_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(BenchParallel, ListsWhatItWouldTrainAsCommandsThatTrain) {
  const Workplace place;
  const ProgramEnd end =
      place.run({"bench", "parallel", "--dataset", "mnist", "--data-dir", "data", "--steps", "1", "--global-batch",
                 "24", "--accumulate", "3", "--nprocs", "2", "-J", "b.json", "--list"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(place.left(), testing::IsEmpty());
  const auto lines = lines_in(end.out);
  ASSERT_EQ(lines.size(), 14u) << end.out;
  EXPECT_EQ(lines[0], "trainings:");
  EXPECT_THAT(lines[1], HasSubstr("one process"));
  EXPECT_THAT(lines[12], HasSubstr("ZeRO 3"));
  EXPECT_THAT(lines[13], testing::StartsWith("PyTorch, one process and with DDP over gloo: "));
  const std::string command = lines[12].substr(lines[12].find("gradring "));
  const ProgramEnd trained = tests::run_program(
      {.command = {"/bin/sh", "-c", "gradring() { " GRADRING_BINARY " \"$@\"; }; " + command + " --run-dir run"},
       .folder = place.folder().path()});
  EXPECT_EQ(trained.code, 0) << command << trained.err;
  EXPECT_THAT(tests::text_of(place.path("run/config.resolved.toml")), HasSubstr("zero = 3"));
}

TEST(BenchParallel, RejectsBatchesThatDoNotDivide) {
  const Workplace place;
  const ProgramEnd end = place.run({"bench", "parallel", "--global-batch", "100", "--nprocs", "3"});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("--global-batch is 100, expected a multiple of 3 ranks times 4 micro-batches"));
}

TEST(BenchScaling, ScalesFromOneRank) {
  const Workplace place;
  const ProgramEnd end =
      run_patiently(place, {"bench", "scaling", "--dataset", "mnist", "--data-dir", "data", "--ranks", "1..2",
                            "--steps", "2", "--batch-size", "16", "-J", "bench.json"});
  ASSERT_EQ(end.code, 0) << end.err;
  const auto json = tests::parse_json(tests::text_of(place.path("bench.json")));
  const auto& rows = json.at("rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows.at(0).at("global_batch"), 32) << "strong scaling keeps the samples of a step";
  EXPECT_EQ(rows.at(1).at("global_batch"), 32);
  EXPECT_EQ(rows.at(2).at("global_batch"), 16) << "weak scaling keeps those of a rank";
  EXPECT_EQ(rows.at(3).at("global_batch"), 32);
  for (const int first : {0, 2}) EXPECT_EQ(rows.at(first).at("efficiency"), 1.0);
  EXPECT_GT(rows.at(3).at("communication_share"), 0);
  const auto listed = lines_in(place.run({"bench", "scaling", "--ranks", "2..3", "--batch-size", "6", "--list"}).out);
  ASSERT_EQ(listed.size(), 5u);
  EXPECT_THAT(listed[1], AllOf(HasSubstr("strong, 2 ranks"), HasSubstr("--nprocs 2 "), HasSubstr("--batch-size 9 ")));
  EXPECT_THAT(listed[4], AllOf(HasSubstr("weak, 3 ranks"), HasSubstr("--nprocs 3 "), HasSubstr("--batch-size 6 ")));
  EXPECT_EQ(place.run({"bench", "scaling", "--ranks", "3..2"}).code, 2);
  EXPECT_EQ(place.run({"bench", "scaling", "--ranks", "1.2"}).code, 2);
}

}  // namespace
}  // namespace gradring
