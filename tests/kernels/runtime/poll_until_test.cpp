// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/poll_until.h"

#include <gtest/gtest.h>

namespace gradring {
namespace {

TEST(PollUntil, AsksUntilItIsDone) {
  int asked = 0;
  const PollPace pace{.spins = 3, .first_nap = std::chrono::nanoseconds(1), .longest_nap = std::chrono::nanoseconds(4)};
  EXPECT_TRUE(poll_until([&] { return ++asked == 10; }, Deadline::after(std::chrono::minutes(1)), pace));
  EXPECT_EQ(asked, 10);
}

TEST(PollUntil, AsksOnceAlsoWhereThereIsNoTime) {
  const auto past = Deadline::after(std::chrono::nanoseconds(0));
  EXPECT_TRUE(poll_until([] { return true; }, past));
  EXPECT_FALSE(poll_until([] { return false; }, past));
}

TEST(PollUntil, GivesUpAtTheDeadline) {
  EXPECT_FALSE(poll_until([] { return false; }, Deadline::after(std::chrono::milliseconds(5))));
}

}  // namespace
}  // namespace gradring
