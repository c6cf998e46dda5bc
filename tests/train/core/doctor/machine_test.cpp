// SPDX-License-Identifier: Apache-2.0
#include "train/core/doctor/doctor.h"

#include <gtest/gtest.h>

#include <sstream>

namespace gradring::train::doctor {
namespace {

TEST(Processor, IsTheFirstOneOfAnX86) {
  std::istringstream text(
      "processor\t: 0\nmodel name\t: Some Processor 9000 @ 2.90GHz\nflags\t\t: fpu avx2 avx512f\nbugs\t\t:\n\n"
      "processor\t: 1\nmodel name\t: Another\nflags\t\t: sse\n");
  const Processor processor = Processor::read(text);
  EXPECT_EQ(processor.name, "Some Processor 9000 @ 2.90GHz");
  EXPECT_TRUE(processor.has("avx2"));
  EXPECT_TRUE(processor.has("avx512f"));
  EXPECT_FALSE(processor.has("avx512"));
  EXPECT_FALSE(processor.has("sse"));
}

TEST(Processor, OfAnArmHasFeaturesAndNoName) {
  std::istringstream text("processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd sve\n");
  const Processor processor = Processor::read(text);
  EXPECT_EQ(processor.name, "");
  EXPECT_TRUE(processor.has("sve"));
}

TEST(Processor, ThatSaysNothingHasNothing) {
  std::istringstream text("");
  EXPECT_TRUE(Processor::read(text).flags.empty());
}

}  // namespace
}  // namespace gradring::train::doctor
