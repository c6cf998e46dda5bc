// SPDX-License-Identifier: Apache-2.0
// A program that nvcc linked with NVIDIA's libcudart.so.13, run with ours by LD_LIBRARY_PATH.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/simulated_gpu/run_options.h"
#include "tests/support/built_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {
namespace {

using simulated_gpu::RunOptions;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DropIn : public testing::Test {
 protected:
  ProgramEnd run(const std::string& part, const RunOptions& options = {}) const {
    return run_program({.command = {built_file(GRADRING_CUDA_PROGRAM), part},
                        .folder = folder_.path(),
                        .variables = {{"LD_LIBRARY_PATH", built_file(GRADRING_CUDART).parent_path()},
                                      {simulated_gpu::kRunOptionsVariable, simulated_gpu::text_of(options)}}});
  }
  /// Without a finding.
  std::string output(const std::string& part, const RunOptions& options = {}) const {
    const ProgramEnd end = run(part, options);
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(end.err, "simulated GPU: 0 errors, 0 warnings\n");
    return end.out;
  }

  TempFolder folder_;
};

TEST_F(DropIn, PrintsWhatKernelsPrintWhenTheHostWaits) {
  EXPECT_EQ(output("printf"),
            "launched\n"
            "thread 0 of block 0:  0.00|left|a|1099511627776|ff|%\n"
            "thread 1 of block 0:  1.50|right|b|1099511627776|ff|%\n"
            "thread 0 of block 1:  0.00|left|a|1099511627776|ff|%\n"
            "thread 1 of block 1:  1.50|right|b|1099511627776|ff|%\n");
}

TEST_F(DropIn, OrdersBlockingStreamsWithTheDefaultStream) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) EXPECT_EQ(output("default_stream", {.seed = seed}), "21 21\n");
}

TEST_F(DropIn, HasModuleVariables) { EXPECT_EQ(output("variables"), "7 14 70 140, 8, 9, 16\n"); }

TEST_F(DropIn, SharesManagedMemoryWithTheHost) { EXPECT_EQ(output("managed"), "1 127\n"); }

TEST_F(DropIn, LaunchesAGraphThatWasBuiltByHand) { EXPECT_EQ(output("graph"), "31\n"); }

TEST_F(DropIn, HasTheDriversNamesOfErrors) {
  EXPECT_EQ(run("driver_errors").out,
            "0 CUDA_SUCCESS\n0 CUDA_ERROR_OUT_OF_MEMORY\n0 CUDA_ERROR_ILLEGAL_ADDRESS\n1 unknown\n");
}

TEST_F(DropIn, GivesKernelsAHeap) { EXPECT_EQ(output("heap"), "31\n"); }

TEST_F(DropIn, FailsWithAnAssertion) {
  const ProgramEnd end = run("assert");
  EXPECT_EQ(end.out, "cudaErrorAssert\n");
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("program.cu:"), HasSubstr("block: [0,0,0], thread: [0,0,0] Assertion `n > 0` failed."),
                    HasSubstr("1 error")));
}

TEST_F(DropIn, GoesOnAfterARaceAndChangesTheExitCode) {
  const ProgramEnd end = run("race");
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.out, "done\n");
  EXPECT_THAT(end.err, AllOf(HasSubstr("race in shared memory"), HasSubstr("program.cu:")));
  EXPECT_THAT(end.err, testing::ContainsRegex("called by shared_race\\(\\).*\n   called by main"));
  EXPECT_EQ(run("race", {.error_exitcode = 7}).code, 7);
  EXPECT_EQ(run("managed", {.error_exitcode = 7}).code, 0);
}

TEST_F(DropIn, WritesFindingsAsJson) {
  const std::string path = folder_.path() / "report.json";
  run("race", {.json = path});
  std::ifstream file(path);
  const auto report = nlohmann::json::parse(file);
  EXPECT_EQ(report["findings"][0]["kind"], "shared-race");
}

TEST_F(DropIn, CountsTheKernelsThatAreAskedFor) {
  const std::string path = folder_.path() / "report.json";
  const ProgramEnd end = run("default_stream", {.counters = true, .kernel = "^sca", .json = path});
  EXPECT_THAT(end.err, HasSubstr("scale"));
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file)["launches"].size(), 3);
  EXPECT_THAT(run("default_stream", {.counters = true, .kernel = "none"}).err, Not(HasSubstr("scale")));
}

TEST_F(DropIn, ExecutesWhatIsEnqueuedWhenTheProgramEnds) {
  const ProgramEnd end = run("pending");
  EXPECT_THAT(end.err, AllOf(HasSubstr("out of bounds"), HasSubstr("called by scale_two(int*)"),
                             HasSubstr("called by pending()"), Not(HasSubstr("scale_one"))));
}

TEST_F(DropIn, SuppressesFindings) {
  const std::string path = folder_.path() / "suppressions";
  std::ofstream(path) << "kind=shared-race kernel=race\n";
  const ProgramEnd end = run("race", {.error_exitcode = 7, .suppressions = path});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err, Not(HasSubstr("race in shared memory")));
}

TEST_F(DropIn, RejectsSuppressionsThatItCannotRead) {
  const std::string path = folder_.path() / "suppressions";
  std::ofstream(path) << "kind=unknown\n";
  const ProgramEnd end = run("race", {.suppressions = path});
  EXPECT_EQ(end.code, 125);
  EXPECT_THAT(end.err, HasSubstr("'kind=unknown' is not valid"));
}

TEST_F(DropIn, ReportsMemoryThatIsLeft) {
  const ProgramEnd end = run("leak", {.error_exitcode = 7});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("warning: at the end of the process, not given back: 1 of cudaMalloc, 100 bytes"),
                    HasSubstr("0 errors, 1 warning")));
}

TEST_F(DropIn, EndsByExitInAHostFunction) {
  const ProgramEnd end = run("exit_in_callback");
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("exit: a call by a function that cudaLaunchHostFunc enqueued"), HasSubstr("1 error")));
}

/// CUDA may be used by a child that was forked before, and by no child that was forked after its first call.
TEST_F(DropIn, JudgesChildrenByFork) {
  const ProgramEnd before = run("fork_before", {.error_exitcode = 7});
  EXPECT_EQ(before.code, 0);
  EXPECT_EQ(before.out, "cudaSuccess cudaSuccess\n");
  EXPECT_THAT(before.err, HasSubstr("not given back: 1 of cudaMalloc, 4 bytes"));
  const ProgramEnd after = run("fork_after", {.error_exitcode = 7});
  EXPECT_EQ(after.code, 7);
  EXPECT_EQ(after.out, "cudaErrorInitializationError cudaErrorInitializationError\n");
  EXPECT_THAT(after.err, HasSubstr("cudaMalloc: a call in a child process, forked after CUDA was used"));
}

TEST_F(DropIn, EndsAfterItsTimeLimit) {
  const ProgramEnd end = run("endless", {.time_limit_s = 1});
  EXPECT_EQ(end.code, simulated_gpu::kTimeLimitExitCode);
  EXPECT_THAT(end.err, HasSubstr("the time limit of 1 s is over"));
}

TEST_F(DropIn, RejectsOptionsThatItCannotRead) {
  const ProgramEnd end = run_program({.command = {built_file(GRADRING_CUDA_PROGRAM), "managed"},
                                      .folder = folder_.path(),
                                      .variables = {{"LD_LIBRARY_PATH", built_file(GRADRING_CUDART).parent_path()},
                                                    {simulated_gpu::kRunOptionsVariable, R"({"seed": "x"})"}}});
  EXPECT_NE(end.code, 0);
  EXPECT_THAT(end.err, HasSubstr("seed cannot be \"x\""));
}

}  // namespace
}  // namespace gradring::tests
