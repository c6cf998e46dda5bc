// SPDX-License-Identifier: Apache-2.0
#include "train/setup/same_settings.h"

#include <gtest/gtest.h>

#include "train/config/resolve.h"

namespace gradring::train {
namespace {

std::string differences(const std::vector<std::string>& settings) { return describe_differences(settings); }

TEST(SameSettings, SaysNothingWhereAllIsTheSame) {
  EXPECT_EQ(differences({"a = 1\nb = 2\n"}), "");
  EXPECT_EQ(differences({"a = 1\nb = 2\n", "a = 1\nb = 2\n", "a = 1\nb = 2\n"}), "");
}

TEST(SameSettings, NamesWhatDiffersWithItsValuesAndRank) {
  EXPECT_EQ(differences({"a = 1\nb = \"x = y\"\n", "a = 1\nb = \"x = z\"\n"}),
            "b is \"x = y\" on rank 0 but \"x = z\" on rank 1");
  EXPECT_EQ(differences({"a = 1\nb = 2\n", "a = 1\nb = 2\n", "a = 3\nb = 4\n"}),
            "a is 1 on rank 0 but 3 on rank 2; b is 2 on rank 0 but 4 on rank 2");
}

TEST(SameSettings, KnowsAnotherVersionByItsOptions) {
  EXPECT_EQ(differences({"a = 1\n", "a = 1\nb = 2\n", "a = 1\n"}), "rank 1 runs another version of gradring");
}

TEST(SameSettings, ReadsWhatToTomlWrites) {
  TrainConfig eight, sixteen;
  eight.batch_size = 8;
  sixteen.batch_size = 16;
  EXPECT_EQ(differences({to_toml(eight), to_toml(sixteen)}), "batch-size is 8 on rank 0 but 16 on rank 1");
}

}  // namespace
}  // namespace gradring::train
