// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/recorded_cpu_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kernels/runtime/cpu_level.h"
#include "kernels/runtime/host/host_device.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class RecordedCpuLevel : public testing::Test {
 protected:
  void check(const nlohmann::ordered_json& about) const { check_cpu_level(about, device_, "run/checkpoints/step-6"); }

  kernels::HostDevice device_;
};

TEST_F(RecordedCpuLevel, NamesTheRunningLevel) {
  EXPECT_THAT(recorded_cpu_level(device_), testing::StartsWith(kernels::cpu_level_name(kernels::cpu_level())));
}

TEST_F(RecordedCpuLevel, AcceptsTheSameLevel) { EXPECT_NO_THROW(check({{kCpuLevel, recorded_cpu_level(device_)}})); }

TEST_F(RecordedCpuLevel, RejectsAnotherLevelAndNamesBoth) {
  EXPECT_THAT(
      [&] {
        check({{kCpuLevel, "x86-64-v9"}});
      },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("run/checkpoints/step-6 was saved with x86-64-v9 code"),
                                      HasSubstr("use the build and the environment that ran x86-64-v9"))));
}

TEST_F(RecordedCpuLevel, AdvisesTheVariableForALevelOfThisBuild) {
  const std::string level(kernels::cpu_level_name(kernels::CpuLevel::baseline));
  EXPECT_EQ(advice_for_cpu_level(level, "another"), "set GRADRING_CPU_LEVEL=" + level);
  EXPECT_EQ(advice_for_cpu_level(level, level + ", DNNL_MAX_CPU_ISA=SSE41"),
            "unset ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA");
}

TEST_F(RecordedCpuLevel, AcceptsGpuAndOlderCheckpoints) {
  EXPECT_NO_THROW(check({{kCpuLevel, ""}}));
  EXPECT_NO_THROW(check(nlohmann::ordered_json::object()));
}

}  // namespace
}  // namespace gradring::train
