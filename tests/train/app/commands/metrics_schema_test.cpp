// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl of real runs, judged by jsonschema with docs/metrics.schema.json.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/train/app/commands/support/run_directories.h"

namespace gradring::tests {
namespace {

using ::testing::HasSubstr;

constexpr int kNoValidator = 77;

class MetricsSchema : public RunDirectories {
 protected:
  ProgramEnd validate(const std::filesystem::path& metrics) const {
    return run_program(
        {.command = {"/usr/bin/env", "python3", GRADRING_CHECK_METRICS, GRADRING_METRICS_SCHEMA, metrics.string()},
         .folder = place_.folder().path()});
  }
};

TEST_F(MetricsSchema, HoldsForARestartedAndResumedRun) {
  Words words = {"train", "--run-dir", "run", "--resume", "auto", "--epochs", "2", "--batch-size", "128"};
  words = joined(words, {"--eval-every", "25", "--save-every-steps", "20", "--precision", "fp16", "--ema", "0.9"});
  words = joined(words, {"--inject", "delay:rank=1,step=3,ms=1;kill:rank=1,step=30", "--name", "first"});
  words = joined(words, {"--group", "*.bias:lr=0.01,epochs=1", "--group", "conv_layers.0.*:frozen"});
  const ProgramEnd first = place_.run(joined({"launch", "--nproc-per-node", "2", "--max-restarts", "1"}, words));
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramEnd second = place_.run(joined(words, {"--nprocs", "2", "--epochs", "3"}));
  ASSERT_EQ(second.code, 0) << second.err;
  const ProgramEnd end = validate(run() / "metrics.jsonl");
  if (end.code == kNoValidator) GTEST_SKIP() << end.out;
  EXPECT_EQ(end.code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("end=2 eval=7 fault=2 header=3 "));
  EXPECT_THAT(end.out, HasSubstr("restart=1 train=120"));
}

TEST_F(MetricsSchema, RejectsAPlantedLine) {
  for (const char* line : {R"({"event":"train","time":1,"step":0,"epoch":1})", R"({"event":"other","time":1})",
                           R"({"event":"fault","time":1,"step":1,"rank":0,"kind":"flood"})",
                           R"({"event":"checkpoint","step":1,"seconds":1})"}) {
    std::ofstream(place_.path("planted.jsonl")) << line << '\n';
    const ProgramEnd end = validate(place_.path("planted.jsonl"));
    if (end.code == kNoValidator) GTEST_SKIP() << end.out;
    EXPECT_EQ(end.code, 1) << line << end.out;
  }
}

}  // namespace
}  // namespace gradring::tests
