// SPDX-License-Identifier: Apache-2.0
#include "train/bench/counted_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

using simulated_gpu::CountedWork;
using simulated_gpu::InstructionClass;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = CountedWork::Kind;

CountedWork kernel(const std::string& name, double seconds, std::uint64_t instructions, std::size_t graph,
                   std::vector<std::size_t> after) {
  CountedWork work{
      .kind = Kind::kernel, .name = name, .graph_launch = graph, .after = std::move(after), .bound_seconds = seconds};
  work.launch.emplace();
  work.launch->kernel = name;
  work.launch->warp_instructions[static_cast<std::size_t>(InstructionClass::fp32)] = instructions;
  return work;
}

/// A kernel outside of the graph; then a, b and c beside each other, d behind b and c; then another graph, of e.
std::vector<CountedWork> step() {
  return {
      kernel("before", 100, 1000, 0, {}),
      kernel("a", 1, 10, 1, {}),
      kernel("b", 5, 20, 1, {1}),
      {.kind = Kind::copy, .name = "cudaMemcpyAsync", .graph_launch = 1, .after = {1}, .bytes = 64, .bound_seconds = 6},
      kernel("c", 2, 40, 1, {3}),
      kernel("d", 1, 80, 1, {2, 4}),
      kernel("e", 3, 160, 2, {})};
}

TEST(StepTotals, SumTheNodesOfGraphs) {
  const StepTotal total = total_of(step(), {});
  EXPECT_EQ(total.all.nodes, 6u);
  EXPECT_EQ(total.all.warp_instructions, 310u);
  EXPECT_DOUBLE_EQ(total.all.bound_seconds, 18);
  EXPECT_EQ(total.excluded, 0u);
}

TEST(StepTotals, FollowTheCriticalPath) {
  const StepTotal total = total_of(step(), {});
  EXPECT_THAT(total.on_path, ElementsAre(1, 3, 4, 5, 6)) << "a, the copy, c, d, and then e";
  EXPECT_EQ(total.critical_path.nodes, 5u);
  EXPECT_EQ(total.critical_path.warp_instructions, 290u);
  EXPECT_DOUBLE_EQ(total.critical_path.bound_seconds, 13);
}

TEST(StepTotals, NeedTheCountsOfEveryNode) {
  std::vector<CountedWork> work = step();
  work[4] = {.kind = Kind::host_function, .name = "cublasLtMatmul", .graph_launch = 1, .after = {3}};
  try {
    total_of(work, {});
    FAIL() << "a total without the product";
  } catch (const UncountedWork& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("node 4 of its graph, host_function 'cublasLtMatmul'"),
                                    HasSubstr("--counters-exclude 'cublasLtMatmul'")));
  }
  const std::vector<std::string> excluded = {"cublasLtMatmul"};
  const StepTotal total = total_of(work, excluded);
  EXPECT_EQ(total.all.nodes, 6u);
  EXPECT_EQ(total.all.warp_instructions, 270u);
  EXPECT_EQ(total.excluded, 1u);
  EXPECT_THAT(total.on_path, ElementsAre(1, 3, 4, 5, 6)) << "others still wait for it";
  EXPECT_DOUBLE_EQ(total.critical_path.bound_seconds, 11);
}

TEST(StepTotals, NeedKernelsThatWereExecuted) {
  std::vector<CountedWork> work = step();
  work[2].launch.reset();
  EXPECT_THROW(total_of(work, {}), UncountedWork);
}

TEST(StepTotals, NeedAGraph) {
  const std::vector<CountedWork> work = {kernel("before", 100, 1000, 0, {})};
  EXPECT_THROW(total_of(work, {}), UncountedWork);
}

TEST(StepTotals, RejectNamesThatNothingHas) {
  const std::vector<std::string> excluded = {"cudnn"};
  EXPECT_THROW(total_of(step(), excluded), UsageError);
}

TEST(StepTotals, AreShownWithTheirNodes) {
  std::vector<CountedWork> work = step();
  work[1].launch->lines = {{.file = "a.cu", .line = 3, .warp_instructions = 7, .excess_sectors = 5}};
  work[2].launch->lines = {{.file = "a.cu", .line = 3, .warp_instructions = 1},
                           {.file = "b.cu", .line = 2, .warp_instructions = 9}};
  const StepTotal total = total_of(work, {});
  const std::string text = step_table(work, total);
  EXPECT_THAT(text,
              AllOf(HasSubstr("\n* a "), HasSubstr("\n  b "), HasSubstr("6 nodes,          310 warp instructions"),
                    HasSubstr("9  b.cu:2\n"), HasSubstr("8  a.cu:3\n")));
  EXPECT_EQ(text.find("before"), text.npos);
  const nlohmann::json json = to_json(work, total);
  EXPECT_EQ(json.at("total").at("nodes"), 6);
  EXPECT_EQ(json.at("total").at("warp_instructions"), 310);
  EXPECT_EQ(json.at("critical_path").at("nodes"), 5);
  EXPECT_EQ(json.at("nodes").size(), 6u);
  EXPECT_EQ(json.at("nodes").at(1).at("on_critical_path"), false);
  EXPECT_EQ(
      json.at("lines").at(1),
      (nlohmann::json{
          {"file", "a.cu"}, {"line", 3}, {"warp_instructions", 8}, {"excess_sectors", 5}, {"excess_wavefronts", 0}}));
}

}  // namespace
}  // namespace gradring::train::bench
