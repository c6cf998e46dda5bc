// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NamePattern, MatchesWholeNames) {
  EXPECT_TRUE(matches("fc.weight", "fc.weight"));
  EXPECT_FALSE(matches("fc", "fc.weight"));
  EXPECT_FALSE(matches("c.weight", "fc.weight"));
  EXPECT_FALSE(matches("fc.weight", "fc"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
}

TEST(NamePattern, StarsStandForAnyCharacters) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.bias", "layer1.0.bn1.bias"));
  EXPECT_TRUE(matches("layer1.*", "layer1.0.bn1.bias"));
  EXPECT_TRUE(matches("layer*.bn?.*", "layer1.0.bn1.bias"));
  EXPECT_TRUE(matches("*a*b", "aab.ab.b"));
  EXPECT_FALSE(matches("*a*b", "aab.ab.c"));
  EXPECT_FALSE(matches("layer?.weight", "layer10.weight"));
  EXPECT_TRUE(matches("**x**", "x"));
}

TEST(NamePattern, SaysWhichNamesThereAre) {
  const std::vector<std::string_view> names = {"conv1.weight", "bn1.weight", "bn1.bias", "fc.weight",
                                               "fc.bias",      "a",          "b"};
  EXPECT_NO_THROW(check_matches_any("--group", "bn*", names));
  EXPECT_THAT(tests::message_of<InvalidArgument>([&] { check_matches_any("--group", "conv2.weight", names); }),
              AllOf(HasSubstr("--group 'conv2.weight' matches no parameter"), HasSubstr("bn1.bias"),
                    HasSubstr("and 1 more"), HasSubstr("Did you mean 'conv1.weight'?")));
  EXPECT_THAT(tests::message_of<InvalidArgument>([&] { check_matches_any("--group", "bias", names); }),
              HasSubstr("A pattern matches whole names: try '*bias*'."));
}

}  // namespace
}  // namespace gradring::train
