// SPDX-License-Identifier: Apache-2.0
// --counters of benchmarks: what the program prints and writes on a simulated GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using tests::ProgramEnd;
using tests::Words;

constexpr int kNoSchemaValidator = 77;

class BenchCounters : public testing::Test {
 protected:
  ProgramEnd bench(Words words, bool on_simulated_gpu = true) {
    words.insert(words.begin(), "bench");
    if (on_simulated_gpu) words.insert(words.end(), {"--device", "cuda", "--simulate-gpu", "h100"});
    words.insert(words.end(), {"--counters", "-J", "result.json", "--csv-file", "result.csv"});
    return place_.run(words);
  }
  json result() const { return json::parse(tests::text_of(place_.path("result.json"))); }
  /// Another reader, with the schema.
  void expect_valid_files() {
    const ProgramEnd judged = tests::run_program({.command = {"/usr/bin/env", "python3", GRADRING_CHECK_BENCH,
                                                              GRADRING_BENCH_SCHEMA, "result.json", "result.csv"},
                                                  .folder = place_.folder().path()});
    EXPECT_TRUE(judged.code == 0 || judged.code == kNoSchemaValidator) << judged.out << judged.err;
  }

  tests::Workplace place_;
};

TEST_F(BenchCounters, OfKernels) {
  const ProgramEnd end = bench({"kernels", "--op", "relu", "--variant", "flat", "--shape", "elements=65536"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out,
              AllOf(HasSubstr("relu_forward_flat_kernel<float>"), HasSubstr("kernels/ops/elementwise/1_flat.cu:")));
  expect_valid_files();
  const json launch = result().at("cases").at(0).at("variants").at(0).at("counters").at(0);
  EXPECT_EQ(launch.at("kernel"), "relu_forward_flat_kernel<float>");
  const json& metrics = launch.at("metrics");
  const auto bytes = [](int arrays) { return arrays * 65536 * 4; };
  EXPECT_EQ(metrics.at("distinct_bytes_read"), bytes(1));
  EXPECT_EQ(metrics.at("distinct_bytes_written"), bytes(1));
  EXPECT_EQ(metrics.at("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"), bytes(1) / 32) << "coalesced";
  EXPECT_EQ(metrics.at("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"),
            metrics.at("ideal_sectors_per_request_global_st"));
  EXPECT_GT(metrics.at("launch__registers_per_thread"), 0);
  EXPECT_EQ(metrics.at("spill_store_bytes"), 0);
  EXPECT_NEAR(launch.at("bound").at("memory_microseconds"), bytes(2) / 3.35e6, 1e-3);
  EXPECT_EQ(metrics.at("smsp__inst_executed.sum"), launch.at("warp_instructions"));
  const ProgramEnd same = place_.run({"bench", "diff", "result.json", "result.json", "--threshold", "0"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
}

TEST_F(BenchCounters, OfARecordedStep) {
  const ProgramEnd end = bench({"step", "--batch-size", "8", "--precision", "fp16", "--steps", "1", "--warmup", "2"});
  ASSERT_EQ(end.code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("critical path, marked by *"));
  expect_valid_files();
  const json file = result();
  const json& nodes = file.at("nodes");
  ASSERT_EQ(file.at("total").at("nodes"), nodes.size());
  std::uint64_t instructions = 0;
  std::size_t on_path = 0;
  double bound = 0;
  for (const json& node : nodes) {
    if (node.contains("launch")) instructions += node.at("launch").at("warp_instructions").get<std::uint64_t>();
    if (!node.at("on_critical_path").get<bool>()) continue;
    ++on_path;
    bound += node.at("bound_microseconds").get<double>();
  }
  EXPECT_GT(instructions, 10000u);
  EXPECT_EQ(file.at("total").at("warp_instructions"), instructions);
  EXPECT_EQ(file.at("critical_path").at("nodes"), on_path);
  EXPECT_NEAR(file.at("critical_path").at("bound_microseconds"), bound, 1e-6 * bound);
  EXPECT_EQ(on_path, nodes.size() - 2) << "two layers have a weight gradient beside their input gradient";
  EXPECT_LT(file.at("critical_path").at("bound_microseconds"), file.at("total").at("bound_microseconds"));
  EXPECT_EQ(file.at("total").at("excluded_nodes"), 0);
}

TEST_F(BenchCounters, RankTheKernelsOfAutotune) {
  std::ofstream(place_.path("small.toml")) << R"(layers = [
  { conv2d = "conv1", out = 12, kernel = 3, stride = 2 },
  { relu = "relu1" },
  { conv2d = "conv2", out = 20, kernel = 3, stride = 2 },
  { relu = "relu2" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
])";
  const auto bound = [&](const Words& more) {
    const ProgramEnd end = place_.run(
        tests::joined({"bench", "step", "--device", "cuda", "--simulate-gpu", "h100", "--model", "small.toml",
                       "--batch-size", "8", "--precision", "fp16", "--counters", "-J", "result.json"},
                      more),
        {{"XDG_CACHE_HOME", place_.path("cache").string()}});
    EXPECT_EQ(end.code, 0) << end.out << end.err;
    return result().at("total").at("bound_microseconds").get<double>();
  };
  const double chosen_by_rules = bound({}), ranked = bound({"--autotune"});
  EXPECT_LT(ranked, chosen_by_rules);
  EXPECT_EQ(bound({"--autotune"}), ranked) << "from the cache";
  EXPECT_THAT(tests::text_of(place_.path("cache/gradring/plans.json")), HasSubstr("simulated NVIDIA H100"));
}

TEST_F(BenchCounters, AreWhatAStepHasInsteadOfTimes) {
  const ProgramEnd end = place_.run({"bench", "step", "--device", "cuda", "--simulate-gpu", "h100", "--batch-size", "8",
                                     "--precision", "fp16", "-J", "result.json"});
  ASSERT_EQ(end.code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("critical path, marked by *"), HasSubstr("Loss after the last step"),
                             testing::Not(HasSubstr("median us")), testing::Not(HasSubstr("samples a second"))));
  EXPECT_GT(result().at("total").at("warp_instructions"), 10000);
}

TEST_F(BenchCounters, OfAStepWithALibraryHaveNoTotalUnlessItIsExcluded) {
  const Words step = {"step", "--batch-size", "4", "--steps", "1", "--warmup", "2", "--nprocs", "2"};
  const ProgramEnd failed = bench(step);
  EXPECT_EQ(failed.code, 1) << failed.out << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("host_function 'NCCL', cannot be counted"));
  Words excluding = step;
  excluding.insert(excluding.end(), {"--counters-exclude", "NCCL"});
  const ProgramEnd end = bench(excluding);
  ASSERT_EQ(end.code, 0) << end.out << end.err;
  EXPECT_GT(result().at("total").at("excluded_nodes"), 0);
}

TEST_F(BenchCounters, NeedASimulatedGpu) {
  for (const char* benchmark : {"kernels", "step"}) {
    const ProgramEnd end = bench({benchmark, "--device", "cpu"}, false);
    EXPECT_EQ(end.code, 2) << benchmark;
    EXPECT_THAT(end.err, HasSubstr("--counters and --annotate need --simulate-gpu")) << benchmark;
  }
  EXPECT_EQ(place_.run({"bench", "step", "--counters-exclude", "NCCL"}).code, 2);
}

}  // namespace
}  // namespace gradring
