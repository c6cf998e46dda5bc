// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cpu_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string_view name(CpuLevel level) { return cpu_level_name(level); }

TEST(CpuLevel, IsTheHighestThatTheProcessorHasUnlessOneIsRequested) {
  for (const CpuLevel level : cpu_levels()) EXPECT_EQ(choose_cpu_level(level, std::nullopt), level);
}

TEST(CpuLevel, CanBeSetToEveryLowerOne) {
  for (const CpuLevel supported : cpu_levels())
    for (const CpuLevel requested : cpu_levels()) {
      if (requested > supported) continue;
      EXPECT_EQ(choose_cpu_level(supported, name(requested)), requested);
    }
}

TEST(CpuLevel, RejectsOneThatTheProcessorLacks) {
  const CpuLevel lowest = cpu_levels().front();
  const CpuLevel highest = cpu_levels().back();
  if (lowest == highest) GTEST_SKIP() << "this build has one level";
  EXPECT_THAT([&] { choose_cpu_level(lowest, name(highest)); },
              ThrowsMessage<DeviceError>(HasSubstr("this processor supports at most " + std::string(name(lowest)))));
}

TEST(CpuLevel, RejectsAnUnknownNameAndListsTheLevels) {
  EXPECT_THAT([] { choose_cpu_level(cpu_levels().back(), "x86-64-v9"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("Levels: " + std::string(name(CpuLevel::baseline)))));
}

TEST(CpuLevel, OfThisProcessIsOneOfTheBuild) {
  EXPECT_THAT(cpu_levels(), testing::Contains(cpu_level()));
  EXPECT_LE(cpu_level(), supported_cpu_level());
}

TEST(CpuLevel, HasANameOfItsOwn) {
  for (const CpuLevel level : cpu_levels()) EXPECT_FALSE(name(level).empty());
  for (const CpuLevel a : cpu_levels())
    for (const CpuLevel b : cpu_levels()) EXPECT_EQ(name(a) == name(b), a == b);
}

}  // namespace
}  // namespace gradring::kernels
