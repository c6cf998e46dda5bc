// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/nearest_name.h"

#include <gtest/gtest.h>

namespace gradring {
namespace {

constexpr std::string_view kKeys[] = {"out", "kernel", "stride", "padding", "p", "ls"};

TEST(NearestName, HasTheFewestLettersToChange) {
  EXPECT_EQ(nearest_name("pading", kKeys), "padding");
  EXPECT_EQ(nearest_name("Stride", kKeys), "stride");
  EXPECT_EQ(nearest_name("", kKeys), "");
}

TEST(NearestName, ElseAbbreviatesOrIsAbbreviated) {
  EXPECT_EQ(nearest_name("kern", kKeys), "kernel");
  EXPECT_EQ(nearest_name("kersz", {{"kernel_size"}}), "kernel_size");
  EXPECT_EQ(nearest_name("ks", {{"kernel_size"}}), "") << "two letters abbreviate too much";
  EXPECT_EQ(nearest_name("kernel_size", kKeys), "kernel");
  EXPECT_EQ(nearest_name("out_channels", kKeys), "out");
  EXPECT_EQ(nearest_name("list", kKeys), "ls");
  EXPECT_EQ(nearest_name("probability", kKeys), "") << "one letter abbreviates too much";
  EXPECT_EQ(nearest_name("an_own_kernel_size", kKeys), "") << "another first letter";
}

TEST(NearestSpelling, IsNoAbbreviation) {
  EXPECT_EQ(nearest_spelling("pading", kKeys), "padding");
  EXPECT_EQ(nearest_spelling("kern", kKeys), "");
  EXPECT_EQ(nearest_spelling("CUDA", {{"CUDA_GRAPH"}}), "");
}

/// The time is a product of two lengths: files of unknown origin have names of a hundred thousand letters.
TEST(NearestName, OfALongNameIsNotSought) { EXPECT_EQ(nearest_name("out" + std::string(200, '_'), kKeys), ""); }

}  // namespace
}  // namespace gradring
