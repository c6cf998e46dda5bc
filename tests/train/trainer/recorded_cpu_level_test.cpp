// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/cpu_code.h"

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

class CpuCode : public testing::Test {
 protected:
  void check(const nlohmann::ordered_json& about) const { check_cpu_code(about, device_, "run/checkpoints/step-6"); }

  kernels::HostDevice device_;
};

TEST_F(CpuCode, IsTheLevelThatRuns) { EXPECT_EQ(cpu_code(device_), kernels::cpu_level_name(kernels::cpu_level())); }

TEST_F(CpuCode, OfTheSameLevelIsAccepted) { EXPECT_NO_THROW(check({{kCpuCode, cpu_code(device_)}})); }

TEST_F(CpuCode, OfAnotherLevelIsRejectedWithTheVariableToSet) {
  EXPECT_THAT(
      [&] {
        check({{kCpuCode, "x86-64-v9"}});
      },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("run/checkpoints/step-6 was computed with code for x86-64-v9"),
                                      HasSubstr("set GRADRING_CPU_LEVEL=x86-64-v9"))));
}

TEST_F(CpuCode, OfAGpuOrAnOlderCheckpointIsUnknownAndAccepted) {
  EXPECT_NO_THROW(check({{kCpuCode, ""}}));
  EXPECT_NO_THROW(check(nlohmann::ordered_json::object()));
}

}  // namespace
}  // namespace gradring::train
