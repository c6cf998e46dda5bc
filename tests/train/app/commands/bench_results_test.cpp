// SPDX-License-Identifier: Apache-2.0
// Files of benchmarks: one form for all, and what `gradring bench diff` says of them. Times are not checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

constexpr int kNoSchemaValidator = 77;

class BenchFiles : public ::testing::TestWithParam<Words> {
 protected:
  Workplace place_;
};

TEST_P(BenchFiles, HaveOneFormThatOtherReadersAccept) {
  const Words words = joined({"bench"}, GetParam()), listed = joined(words, {"--list"});
  const ProgramEnd end = place_.run(joined(words, {"-J", "result.json", "--csv-file", "result.csv"}));
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("noise"));
  const ProgramEnd judged = tests::run_program(
      {.command = {"/usr/bin/env", "python3", GRADRING_CHECK_BENCH, GRADRING_BENCH_SCHEMA, "result.json", "result.csv"},
       .folder = place_.folder().path()});
  EXPECT_TRUE(judged.code == 0 || judged.code == kNoSchemaValidator) << judged.out << judged.err;
  const ProgramEnd same = place_.run({"bench", "diff", "result.json", "result.json"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("0 slower, 0 faster"));
  const ProgramEnd list = place_.run(listed);
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(Not(IsEmpty()), Not(HasSubstr("noise")))) << "measures nothing";
  if (judged.code == kNoSchemaValidator) GTEST_SKIP() << judged.out;
}

INSTANTIATE_TEST_SUITE_P(
    Benchmarks, BenchFiles,
    ::testing::Values(Words{"kernels", "--op", "relu", "--shape", "elements=10:1000:*10", "--seconds", "0"},
                      Words{"step", "--batch-size", "2:4:+2", "--steps", "5", "--warmup", "0"},
                      Words{"step", "--batch-size", "2", "--steps", "5", "--nprocs", "2", "--comm", "tcp"},
                      Words{"allreduce", "-n", "5", "-w", "1", "--sizes", "4K,16K", "--comm", "in-process"},
                      Words{"allreduce", "-n", "5", "-w", "1", "--sizes", "4K", "--comm", "tcp"},
                      Words{"allreduce", "-n", "5", "-w", "1", "--collective", "barrier", "--nprocs", "3"},
                      Words{"loader", "--batch-size", "100", "--epochs", "5"},
                      Words{"launch", "--nprocs", "1", "--rounds", "5"}),
    [](const auto& info) { return info.param.front() + std::to_string(info.index); });

/// A result with one row of `median` and 2 % of noise.
std::string planted_result(double median, const std::string& variant = "flat") {
  nlohmann::json samples = nlohmann::json::array();
  for (const double share : {0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03}) samples.push_back(median * share);
  const nlohmann::json row = {{"key", {{"variant", variant}}}, {"unit", "us"}, {"samples", samples}};
  return nlohmann::json({{"schema", 1},
                         {"benchmark", "kernels"},
                         {"commit", "1234567"},
                         {"date", "2026-11-24"},
                         {"measurements", {row}}})
      .dump();
}

class BenchDiff : public ::testing::Test {
 protected:
  void write(const char* name, const std::string& text) const { std::ofstream(place_.path(name)) << text; }
  ProgramEnd diff(const Words& more) const { return place_.run(joined({"bench", "diff"}, more)); }
  Workplace place_;
};

TEST_F(BenchDiff, EndsWithOneIfARowIsSlower) {
  write("old.json", planted_result(100));
  write("slow.json", planted_result(110));
  const ProgramEnd slower = diff({"old.json", "slow.json"});
  EXPECT_EQ(slower.code, 1);
  EXPECT_THAT(slower.out, AllOf(HasSubstr("+10.0 %   slower"), HasSubstr("1 slower, 0 faster, 0 same")));
  EXPECT_THAT(slower.err, HasSubstr("1 of 1 rows are slower"));
  const ProgramEnd faster = diff({"slow.json", "old.json"});
  EXPECT_EQ(faster.code, 0) << faster.err;
  EXPECT_THAT(faster.out, HasSubstr("-9.1 %   faster"));
  EXPECT_EQ(diff({"old.json", "slow.json", "--threshold", "15"}).code, 0);
  EXPECT_EQ(diff({"old.json", "slow.json", "--threshold", "5"}).code, 1);
}

TEST_F(BenchDiff, WritesJsonAndCsv) {
  write("old.json", planted_result(100));
  write("new.json", planted_result(100.5));
  write("other.json", planted_result(100, "tiled, \"wide\""));
  const auto json = tests::parse_json(diff({"old.json", "new.json", "--json"}).out);
  EXPECT_EQ(json.at("rows").at(0).at("verdict"), "same");
  EXPECT_NEAR(json.at("rows").at(0).at("change").get<double>(), 0.005, 1e-12);
  const auto other = tests::parse_json(diff({"old.json", "other.json", "--json"}).out);
  EXPECT_EQ(other.at("only_new").at(0).at("variant"), "tiled, \"wide\"");
  EXPECT_TRUE(other.at("rows").empty());
  std::ofstream(place_.path("diff.csv")) << diff({"other.json", "other.json", "--csv"}).out;
  const ProgramEnd read = tests::run_program(
      {.command = {"/usr/bin/env", "python3", "-c",
                   "import csv; print(*[(r['variant'], r['verdict']) for r in csv.DictReader(open('diff.csv'))])"},
       .folder = place_.folder().path()});
  EXPECT_EQ(read.out, "('tiled, \"wide\"', 'same')\n") << read.err;
}

TEST_F(BenchDiff, PutsTheVariantsOfOneFileSideBySide) {
  nlohmann::json result = nlohmann::json::parse(planted_result(1)), rows = nlohmann::json::array();
  const auto add = [&](const char* variant, const char* counter, double value) {
    rows.push_back({{"key", {{"case", "gemm"}, {"variant", variant}, {"counter", counter}}},
                    {"unit", "1"},
                    {"exact", true},
                    {"samples", {value}}});
  };
  add("tiled", "load sectors", 123456789);
  add("tiled", "barriers", 0);
  add("mma", "load sectors", 500);
  add("mma", "barriers", 0);
  result["measurements"] = rows;
  write("both.json", result.dump());
  const ProgramEnd end = diff({"both.json"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("tiled"), HasSubstr("load sectors"), HasSubstr("123456789"), HasSubstr("500"),
                             Not(HasSubstr("barriers"))));
  EXPECT_THAT(diff({"both.json", "--csv"}).out, HasSubstr("case gemm,counter load sectors,1,mma,500"));
  const auto json = tests::parse_json(diff({"both.json", "--json"}).out);
  EXPECT_EQ(json.at("works").at(0).at("rows").at(0).at("medians").at("tiled"), 123456789);
  EXPECT_EQ(diff({"both.json", "--threshold", "5"}).code, 2);
  rows[0]["samples"] = {123456790};
  result["measurements"] = rows;
  write("changed.json", result.dump());
  const ProgramEnd changed = diff({"both.json", "changed.json"});
  EXPECT_THAT(changed.out, AllOf(HasSubstr("123456790"), HasSubstr("1 slower"), Not(HasSubstr("mma"))))
      << "what is equal is left out";
}

TEST_F(BenchDiff, RejectsWhatIsNoResult) {
  write("good.json", planted_result(100));
  write("text.json", "no JSON");
  write("list.json", "[1]");
  write("old_version.json", R"({"benchmark": "kernels", "machine": "x"})");
  write("cut.json", R"({"schema": 1, "benchmark": "kernels", "measurements": [{"key": {}}]})");
  write("empty.json",
        R"({"schema": 1, "benchmark": "kernels", "measurements": [{"key": {}, "unit": "us", "samples": []}]})");
  write("future.json", R"({"schema": 2, "benchmark": "kernels"})");
  write("large.json", planted_result(100));
  std::filesystem::resize_file(place_.path("large.json"), std::uint64_t{1} << 40);
  for (const char* file : {"text.json", "list.json", "old_version.json", "cut.json", "empty.json", "future.json",
                           "missing.json", ".", "large.json"}) {
    const ProgramEnd end = diff({"good.json", file});
    EXPECT_EQ(end.code, 4) << file << end.out << end.err;
    EXPECT_THAT(end.err, StartsWith("gradring bench: " + std::string(file))) << end.err;
  }
  EXPECT_EQ(diff({}).code, 2);
  EXPECT_EQ(diff({"good.json", "good.json", "good.json"}).code, 2);
  EXPECT_EQ(diff({"good.json", "good.json", "--json", "--csv"}).code, 2);
  EXPECT_EQ(diff({"good.json", "good.json", "--threshold", "-1"}).code, 2);
}

TEST(BenchRejects, TransportsThatAreNotThere) {
  const Workplace place;
  const auto refused = [&](const Words& words, int code, const std::string& why) {
    const ProgramEnd end = place.run(words);
    EXPECT_EQ(end.code, code) << end.err;
    EXPECT_THAT(end.err, HasSubstr(why));
  };
  refused({"bench", "allreduce", "--comm", "nccl"}, 2, "add --device cuda");
  refused({"bench", "allreduce", "--comm", "tcp", "--device", "cuda"}, 2, "--comm tcp transfers host memory");
  refused({"bench", "allreduce", "--comm", "in-process", "--compare", "gloo"}, 2, "a process per rank");
  refused({"bench", "step", "--comm", "nccl"}, 2, "--comm nccl");
  refused({"bench", "step", "--backend", "cuda", "--device", "cpu"}, 2, "--backend cuda computes on a GPU");
  refused({"bench", "step", "--batch-size", "16:8:*2"}, 2, "--batch-size is '16:8:*2'");
  refused({"bench", "kernels", "--op", "gemm", "--shape", "batch=1:2:+1", "--ncu"}, 2, "profiles one shape");
}

}  // namespace
}  // namespace gradring
