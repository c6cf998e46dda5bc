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

TEST(MakeDevice, AutoAndCpuAreThisMachinesCores) {
  for (const char* name : {"auto", "cpu"}) EXPECT_EQ(make_device(name, 1)->id().kind, kernels::DeviceKind::cpu) << name;
}

TEST(MakeDevice, SaysWhatIsMissingForCuda) {
  EXPECT_THAT(message_of<EnvironmentError>([] { make_device("cuda:1", 1); }),
              ::testing::AllOf(HasSubstr("cuda:1"), HasSubstr("use --device cpu")));
  EXPECT_THROW(make_device("tpu", 1), InvalidArgument);
}

TEST(MakeBackend, KnowsItsNames) {
  const auto device = make_device("cpu", 1);
  EXPECT_EQ(make_backend("reference", *device, 1)->name(), "reference");
  EXPECT_EQ(make_backend("cpu", *device, 1)->name(), "cpu");
  EXPECT_EQ(make_backend("auto", *device, 1)->name(), "cpu");
  EXPECT_THROW(make_backend("abacus", *device, 1), UsageError);
}

}  // namespace
}  // namespace gradring::train
