// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/train_config.h"

#include <gtest/gtest.h>

#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

ValSplit split_of(std::string_view text) { return parse_val_split("val-split", text); }

TEST(ValSplit, IsAFractionOrANumberOfSamples) {
  EXPECT_EQ(validation_samples(split_of("0.1"), 60'000), 6'000);
  EXPECT_EQ(validation_samples(split_of("0.25"), 10), 2) << "rounded down, as PyTorch does";
  EXPECT_EQ(validation_samples(split_of("1e-3"), 60'000), 60);
  EXPECT_EQ(validation_samples(split_of("5000"), 60'000), 5'000);
  EXPECT_EQ(validation_samples(split_of("1"), 2), 1) << "one sample, not all";
  EXPECT_EQ(validation_samples(split_of("0"), 2), 0);
  EXPECT_FALSE(split_of("0"));
  EXPECT_FALSE(split_of("0.0"));
}

TEST(ValSplit, ShowsWhatItReads) {
  for (const char* text : {"0", "0.1", "0.001", "1e-05", "5000"}) EXPECT_EQ(show_val_split(split_of(text)), text);
}

TEST(ValSplit, RejectsWhatLeavesASideEmpty) {
  for (const char* text : {"1.0", "1.5", "-0.1", "-3", "", "half", "0.1x", "nan"})
    EXPECT_THROW(split_of(text), UsageError) << text;
  EXPECT_THROW(validation_samples(split_of("60000"), 60'000), UsageError);
  EXPECT_THROW(validation_samples(split_of("0.01"), 50), UsageError) << "none";
}

}  // namespace
}  // namespace gradring::train
