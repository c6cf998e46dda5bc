// SPDX-License-Identifier: Apache-2.0
#include "train/config/checkpointing_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/resolve.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

using Kind = nn::Checkpointing::Kind;
using testing::HasSubstr;

nn::Checkpointing read(std::string_view text) {
  nn::Checkpointing checkpointing{.kind = Kind::segments, .segments = 9};  // what came before is gone
  read_checkpointing("checkpoint-activations", text, checkpointing);
  return checkpointing;
}

TEST(CheckpointingOptions, IsAWordOrANumberOfSegments) {
  EXPECT_EQ(read("none").kind, Kind::none);
  EXPECT_EQ(read("auto").kind, Kind::automatic);
  EXPECT_EQ(read("none").segments, 0);
  EXPECT_EQ(read("12").kind, Kind::segments);
  EXPECT_EQ(read("12").segments, 12);
  for (const char* text : {"none", "auto", "3"}) EXPECT_EQ(show_checkpointing(read(text)), text);
}

TEST(CheckpointingOptions, RefusesOtherWordsAndNumbers) {
  for (const char* wrong : {"", "0", "-1", "2.5", "all", "AUTO", "99999999999999999999"})
    EXPECT_THROW(read(wrong), UsageError) << wrong;
  try {
    read("all");
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("none, auto or a number of segments"));
  }
}

TEST(CheckpointingOptions, ABudgetIsMegabytesOrNone) {
  EXPECT_EQ(parse_budget("activation-budget-mb", "0"), 0u);
  EXPECT_EQ(parse_budget("activation-budget-mb", "1.5"), 3u << 19);
  EXPECT_THROW(parse_budget("activation-budget-mb", "-1"), UsageError);
}

TEST(CheckpointingOptions, ABudgetBelongsToAuto) {
  const auto settle = [](const char* way) {
    return resolve({{"checkpoint-activations", way}, {"activation-budget-mb", "8"}}, {}, std::nullopt).config;
  };
  EXPECT_EQ(settle("auto").checkpointing.budget_bytes, 8u << 20);
  EXPECT_THROW(settle("none"), UsageError);
  EXPECT_THROW(settle("4"), UsageError);
}

}  // namespace
}  // namespace gradring::train
