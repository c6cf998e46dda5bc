// SPDX-License-Identifier: Apache-2.0
#include "train/bench/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Sweep, MultipliesOrAddsUpToItsEnd) {
  EXPECT_THAT(parse_values("shape", "64"), ElementsAre(64));
  EXPECT_THAT(parse_values("shape", "16:128:*2"), ElementsAre(16, 32, 64, 128));
  EXPECT_THAT(parse_values("shape", "16:100:*2"), ElementsAre(16, 32, 64));
  EXPECT_THAT(parse_values("shape", "16:64:+16"), ElementsAre(16, 32, 48, 64));
  EXPECT_THAT(parse_values("shape", "7:7:+1"), ElementsAre(7));
}

TEST(Sweep, OfSeveralExtentsIsAProduct) {
  using Extents = kernels::bench::Extents;
  EXPECT_THAT(parse_shapes("in=1:2:+1,batch=8,out=3:9:*3"),
              ElementsAre(Extents{{"in", 1}, {"batch", 8}, {"out", 3}}, Extents{{"in", 1}, {"batch", 8}, {"out", 9}},
                          Extents{{"in", 2}, {"batch", 8}, {"out", 3}}, Extents{{"in", 2}, {"batch", 8}, {"out", 9}}));
}

TEST(Sweep, SaysWhatIsWrong) {
  const auto why = [](const char* text) -> std::string {
    try {
      parse_shapes(text);
      return "accepted";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(why("batch=16:512"), HasSubstr("has no step"));
  EXPECT_THAT(why("batch=16:512:2"), HasSubstr("neither *FACTOR nor +INCREMENT"));
  EXPECT_THAT(why("batch=16:512:*"), HasSubstr("neither *FACTOR nor +INCREMENT"));
  EXPECT_THAT(why("batch=512:16:*2"), HasSubstr("above its last, 16"));
  EXPECT_THAT(why("batch=16:512:*1"), HasSubstr("step"));
  EXPECT_THAT(why("batch=16:512:+0"), HasSubstr("step"));
  EXPECT_THAT(why("batch=0:512:*2"), HasSubstr("shape batch"));
  EXPECT_THAT(why("batch=1:1000000:+1"), HasSubstr("more than 1000 values"));
  EXPECT_THAT(why("a=1:100:+1,b=1:100:+1"), HasSubstr("more than 1000 shapes"));
  EXPECT_THAT(why("batch=16,batch=32"), HasSubstr("names batch twice"));
  EXPECT_THAT(why("batch"), HasSubstr("batch=16:512:*2"));
}

}  // namespace
}  // namespace gradring::train::bench
