// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "train/launch/logs/log_spec.h"

namespace gradring::train {
namespace {

/// 0 to 3, as torchrun counts them.
int streams(const std::string& text, int local_rank) {
  const auto map = StreamMap::from_text(text);
  return int(map.has(local_rank, Stream::out)) + 2 * int(map.has(local_rank, Stream::err));
}

TEST(StreamMap, AppliesOneNumberToAllRanks) {
  for (int value = 0; value <= 3; ++value) EXPECT_EQ(streams(std::to_string(value), 17), value);
  EXPECT_TRUE(StreamMap().empty());
  EXPECT_TRUE(StreamMap::from_text("0").empty());
  EXPECT_FALSE(StreamMap::from_text("2").empty());
}

TEST(StreamMap, AppliesNumbersByRank) {
  const std::string text = "0:3,12:1,1:2,7:0";
  EXPECT_EQ(streams(text, 0), 3);
  EXPECT_EQ(streams(text, 1), 2);
  EXPECT_EQ(streams(text, 2), 0);
  EXPECT_EQ(streams(text, 7), 0);
  EXPECT_EQ(streams(text, 12), 1);
  EXPECT_EQ(StreamMap::from_text(text).highest_rank(), 12);
  EXPECT_EQ(StreamMap::from_text("1").highest_rank(), -1);
  EXPECT_TRUE(StreamMap::from_text("3:0").empty());
}

TEST(StreamMap, RejectsOtherText) {
  for (const char* text : {"", "4", "-1", "a", "0:4", "0:1,", ",0:1", "0:1,1", "0:", ":1", "0:1,0:1", "0:1:1", "0 :1"})
    EXPECT_THROW(StreamMap::from_text(text), InvalidArgument) << text;
}

const LineOwner kOwner{.role_name = "actor", .rank = 13, .local_rank = 3, .node_rank = 2};

TEST(LinePrefix, DefaultsToTorchruns) { EXPECT_EQ(LinePrefix("", kOwner).now(), "[actor3]:"); }

TEST(LinePrefix, ReplacesKnownMacros) {
  EXPECT_EQ(LinePrefix("${rank} ${local_rank} ${node_rank} ${role_name} ${rank}", kOwner).now(), "13 3 2 actor 13");
  EXPECT_EQ(LinePrefix("$rank ${host} {rank}", kOwner).now(), "$rank ${host} {rank}");
}

TEST(LinePrefix, ReplacesTimeByTheCurrentTime) {
  EXPECT_THAT(LinePrefix("${time} ", kOwner).now(),
              testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9] [0-9:]*\\.[0-9][0-9][0-9] "));
}

}  // namespace
}  // namespace gradring::train
