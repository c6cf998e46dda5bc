// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/line_prefix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::train {
namespace {

const LineOwner kOwner{.role_name = "actor", .rank = 13, .local_rank = 3, .node_rank = 2};

TEST(LinePrefix, IsTorchrunsByDefault) { EXPECT_EQ(LinePrefix("", kOwner).now(), "[actor3]:"); }

TEST(LinePrefix, FillsInWhatItKnows) {
  EXPECT_EQ(LinePrefix("${rank} ${local_rank} ${node_rank} ${role_name} ${rank}", kOwner).now(), "13 3 2 actor 13");
  EXPECT_EQ(LinePrefix("$rank ${host} {rank}", kOwner).now(), "$rank ${host} {rank}");
}

TEST(LinePrefix, HasTheTimeOfNow) {
  EXPECT_THAT(LinePrefix("${time} ", kOwner).now(),
              testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9] [0-9:]*\\.[0-9][0-9][0-9] "));
}

}  // namespace
}  // namespace gradring::train
