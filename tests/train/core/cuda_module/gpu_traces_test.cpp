// SPDX-License-Identifier: Apache-2.0
// What --trace records of a GPU, and what a profiler sees: whole trainings on stand-ins, by CUPTI's and NVTX's interfaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "kernels/runtime/trace_track.h"
#include "tests/support/built_file.h"
#include "tests/support/json.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "tests/train/support/text_of.h"
#include "train/records/trace/trace_file.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr int kNoReader = 77;

class GpuTraces : public ::testing::Test {
 protected:
  ProgramEnd train(const Words& more, Workplace::Variables variables = {}) const {
    const std::filesystem::path cupti = built_file(GRADRING_FAKE_CUPTI).parent_path();
    variables.insert(variables.end(),
                     {{"CUDA_VISIBLE_DEVICES", "0,1"},
                      {"LD_LIBRARY_PATH", std::string(GRADRING_STAND_IN_FOLDER) + ":" + cupti.string()}});
    const Words words =
        joined({"launch", "--nproc-per-node=2"}, short_training({"--device", "cuda", "--steps", "8", "--threads", "1",
                                                                 "--resident", "off", "--batch-size", "4"}));
    return place_.run(joined(words, more), variables);
  }
  train::TraceFile trace() const {
    const std::filesystem::path path = place_.path("t.json");
    return train::read_trace(std::span(&path, 1));
  }

  const Words traced_ = {"--trace", "t.json", "--trace-steps", "3:6"};
  Workplace place_;
};

TEST_F(GpuTraces, HaveWhatTheGpuExecutedOnTheHostsClock) {
  const std::int64_t before = kernels::TraceTrack::now();
  const ProgramEnd end = train(traced_);
  const std::int64_t after = kernels::TraceTrack::now();
  ASSERT_EQ(end.code, 0) << end.err;
  const train::TraceFile file = trace();
  EXPECT_THAT(file.notes, IsEmpty());
  std::map<std::string, int> counts;
  std::set<std::string> names;
  for (const train::TraceSlice& slice : file.slices) {
    ++counts[slice.category];
    if (slice.category == "kernel") names.insert(slice.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"first_fake_kernel<float>", "second_fake_kernel"}));
  EXPECT_EQ(counts["kernel"], 2 * 2) << "two ranks";
  EXPECT_EQ(counts["memcpy"], 2);
  EXPECT_EQ(counts["memset"], 2);
  EXPECT_GE(counts["loader"], 2);
  EXPECT_EQ(counts["forward"] + counts["collective"], 0) << "the host does not see when they run";
  for (const train::TraceSlice& slice : file.slices) {
    EXPECT_GE(slice.begin, before) << slice.category;
    EXPECT_LE(slice.end, after) << slice.category;
  }
  const char* const python = std::getenv("GRADRING_TEST_PYTHON");
  const ProgramEnd judged =
      run_program({.command = {"/usr/bin/env", python ? python : "python3", GRADRING_CHECK_TRACE, "t.json"},
                   .folder = place_.folder().path(),
                   .variables = {}});
  EXPECT_TRUE(judged.code == 0 || judged.code == kNoReader) << judged.out << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("kernel=4"));
}

TEST_F(GpuTraces, NoteWhatCuptiDropped) {
  const ProgramEnd end = train(traced_, {{"GRADRING_FAKE_CUPTI_DROPPED", "7"}});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(trace().notes, Contains(AllOf(HasSubstr("rank 1: "), HasSubstr("7 GPU activities were dropped"))));
  EXPECT_THAT(place_.run({"trace", "summary", "t.json"}).out,
              HasSubstr("Note of rank 0: 7 GPU activities were dropped"));
}

TEST_F(GpuTraces, HaveTheRestWithoutAUsableCupti) {
  const ProgramEnd end = train(traced_, {{"GRADRING_FAKE_CUPTI_VERSION", "5"}});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(tests::text_of(place_.path("run/logs/rank_0.log")),
              AllOf(HasSubstr("--trace: the trace has no GPU activities: "), HasSubstr("has version 5 of CUPTI")));
  std::map<std::string, int> counts;
  for (const train::TraceSlice& slice : trace().slices) ++counts[slice.category];
  EXPECT_EQ(counts["step"], 2 * 4);
  EXPECT_EQ(counts["kernel"], 0);
}

/// Also without --trace.
TEST_F(GpuTraces, ShowRangesToAProfiler) {
  const ProgramEnd end = train({"--bucket-mb", "0.1", "--first-bucket-mb", "0.01"},
                               {{"NVTX_INJECTION64_PATH", built_file(GRADRING_NVTX_RECORDER).string()},
                                {"GRADRING_NVTX_FILE", place_.path("ranges").string()}});
  ASSERT_EQ(end.code, 0) << end.err;
  std::istringstream lines(tests::text_of(place_.path("ranges")));
  std::map<std::string, std::set<std::string>> names, payloads;
  std::string domain, category, payload, depth, thread, name;
  while (lines >> domain >> category >> payload >> depth >> thread && std::getline(lines >> std::ws, name)) {
    EXPECT_EQ(domain, "gradring");
    names[category].insert(name);
    payloads[category].insert(payload);
    const bool within = category == "bucket" || category == "optimizer";
    EXPECT_FALSE(within && depth == "0") << name << " is not within a step";
    EXPECT_FALSE(category == "step" && depth != "0") << "steps are in nothing else";
  }
  EXPECT_THAT(payloads["step"], (std::set<std::string>{"1", "2", "3", "4", "5", "6", "7", "8"}));
  EXPECT_THAT(payloads["bucket"], IsSupersetOf({"0", "1"}));
  EXPECT_THAT(names["forward"], AllOf(Contains("forward"), Contains(HasSubstr("conv_layers.0"))));
  EXPECT_THAT(names["backward"], AllOf(Contains("backward"), Contains(HasSubstr("loss"))));
  EXPECT_THAT(names["optimizer"], Contains("optimizer"));
  EXPECT_THAT(names["data"], Contains("data wait"));
  EXPECT_THAT(names["loader"], Contains("prepare batch"));
  EXPECT_THAT(names["collective"], Not(IsEmpty()));
}

}  // namespace
}  // namespace gradring::tests
