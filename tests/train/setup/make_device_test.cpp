// SPDX-License-Identifier: Apache-2.0
#include "train/setup/make_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/runtime/error.h"
#include "tests/data/support/message_of.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using tests::message_of;

std::optional<std::string> nothing_set(const std::string&) { return std::nullopt; }

TEST(MakeDevice, AutoAndCpuAreThisMachinesCores) {
  for (const char* name : {"auto", "cpu"})
    EXPECT_EQ(make_device(name, {}, nothing_set)->id().kind, kernels::DeviceKind::cpu) << name;
}

TEST(MakeDevice, SaysWhatIsMissingForCuda) {
  EXPECT_THAT(message_of<EnvironmentError>([] { make_device("cuda:1", {}, nothing_set); }),
              ::testing::AllOf(HasSubstr("cuda:1"), HasSubstr("use --device cpu")));
  EXPECT_THROW(make_device("tpu", {}, nothing_set), InvalidArgument);
}

TEST(MakeBackend, KnowsItsNames) {
  const auto device = make_device("cpu", {}, nothing_set);
  EXPECT_EQ(make_backend("reference", *device)->name(), "reference");
  EXPECT_EQ(make_backend("cpu", *device)->name(), "cpu");
  EXPECT_EQ(make_backend("auto", *device)->name(), "cpu");
  EXPECT_THROW(make_backend("abacus", *device), UsageError);
}

}  // namespace
}  // namespace gradring::train
