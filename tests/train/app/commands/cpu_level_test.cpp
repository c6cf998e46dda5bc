// SPDX-License-Identifier: Apache-2.0
// GRADRING_CPU_LEVEL: which copy of the hot code a run uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kernels/runtime/cpu_level.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

class CpuLevelOfRun : public testing::Test {
 protected:
  static std::string name(kernels::CpuLevel level) { return std::string(kernels::cpu_level_name(level)); }

  ProgramEnd run(const std::string& level, const Words& words) const {
    return tests::run_program(place_.gradring(words, {{kernels::kCpuLevelVariable, level}}));
  }
  static Words training(const Words& more) {
    return tests::joined(short_training({"--run-dir", "run", "--device", "cpu", "--reproducible", "--resume", "auto",
                                         "--epochs", "20", "--save-every-steps", "1"}),
                         more);
  }

  Workplace place_;
};

TEST_F(CpuLevelOfRun, IsNamedByDoctorAndAtTheStartOfARun) {
  const std::string level = name(kernels::CpuLevel::baseline);
  EXPECT_THAT(run(level, {"doctor"}).out, HasSubstr("CPU level       " + level));
  EXPECT_THAT(run(level, training({"--steps", "1", "--progress", "plain"})).out, HasSubstr(level + " code"));
  EXPECT_THAT(tests::text_of(place_.path("run/logs/rank_0.log")), HasSubstr(level + " code"));
}

TEST_F(CpuLevelOfRun, MisspeltVariableIsAUsageError) {
  const ProgramEnd end = tests::run_program(place_.gradring(training({"--steps", "1"}), {{"GRADRING_CPU_LEVL", "x"}}));
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, HasSubstr("Did you mean 'GRADRING_CPU_LEVEL'?"));
}

TEST_F(CpuLevelOfRun, EmptyVariableSelectsTheHighest) {
  EXPECT_THAT(run("", {"doctor"}).out, HasSubstr("CPU level       " + name(kernels::supported_cpu_level())));
}

TEST_F(CpuLevelOfRun, RejectsUnknownLevel) {
  const ProgramEnd end = run("x86-64-v9", training({"--steps", "1"}));
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, AllOf(HasSubstr("x86-64-v9"), HasSubstr("Levels:")));
  EXPECT_FALSE(std::filesystem::exists(place_.path("run")));
}

TEST_F(CpuLevelOfRun, ReproducibleResumeRejectsAnotherLevel) {
  const auto highest = kernels::supported_cpu_level();
  if (highest == kernels::CpuLevel::baseline) GTEST_SKIP() << "one level on this processor, or in this build";
  const std::string lowest = name(kernels::CpuLevel::baseline);
  ASSERT_EQ(run(lowest, training({"--steps", "2"})).code, 0);
  const std::string metrics = tests::text_of(place_.path("run/metrics.jsonl"));

  const ProgramEnd rejected = run(name(highest), training({"--steps", "3"}));
  EXPECT_EQ(rejected.code, 2);
  EXPECT_THAT(rejected.err, HasSubstr("set GRADRING_CPU_LEVEL=" + lowest));
  EXPECT_EQ(tests::text_of(place_.path("run/metrics.jsonl")), metrics);

  const ProgramEnd sharded = run(name(highest), training({"--steps", "3", "--nprocs", "2", "--zero", "3"}));
  EXPECT_EQ(sharded.code, 2);
  EXPECT_THAT(sharded.err, HasSubstr("checkpoints/step-2 was saved with"));

  EXPECT_EQ(run(lowest, training({"--steps", "3"})).code, 0);
}

/// Replicas that round differently would not stay equal.
TEST_F(CpuLevelOfRun, RanksMustRunTheSame) {
  const auto highest = kernels::supported_cpu_level();
  if (highest == kernels::CpuLevel::baseline) GTEST_SKIP() << "one level on this processor, or in this build";
  const auto rank = [&](const std::string& level, const char* number) {
    return place_.gradring(short_training({"--run-dir", "run", "--device", "cpu"}),
                           {{kernels::kCpuLevelVariable, level},
                            {"RANK", number},
                            {"LOCAL_RANK", number},
                            {"WORLD_SIZE", "2"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"GRADRING_STORE", place_.path("store").string()}});
  };
  std::filesystem::create_directory(place_.path("store"));
  tests::RunningProgram first(rank(name(kernels::CpuLevel::baseline), "0"));
  const ProgramEnd second = tests::run_program(rank(name(highest), "1"));
  EXPECT_EQ(second.code, 163);
  const std::string lowest = name(kernels::CpuLevel::baseline);
  EXPECT_THAT(second.err, AllOf(HasSubstr("the CPU level is " + lowest + " on rank 0 ("),
                                HasSubstr("but " + name(highest) + " on rank 1 ("),
                                HasSubstr("set GRADRING_CPU_LEVEL=" + lowest + " on all ranks")));
  EXPECT_EQ(first.wait().code, 163);
}

}  // namespace
}  // namespace gradring
