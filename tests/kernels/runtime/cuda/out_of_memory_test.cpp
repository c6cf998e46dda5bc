// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kGiB = std::size_t{1} << 30;

TEST(Gibibytes, HaveOneDecimal) {
  EXPECT_EQ(gibibytes(0), "0.0 GiB");
  EXPECT_EQ(gibibytes(kGiB), "1.0 GiB");
  EXPECT_EQ(gibibytes(kGiB + kGiB / 2), "1.5 GiB");
  EXPECT_EQ(gibibytes(2 * kGiB - 1), "2.0 GiB");
  EXPECT_EQ(gibibytes(150 * kGiB), "150.0 GiB");
  EXPECT_EQ(gibibytes(std::size_t{1} << 60), "1073741824.0 GiB");
}

TEST(OutOfMemory, SaysWhatIsMissingAndWhatToDo) {
  EXPECT_THAT(
      out_of_memory("cuda:1", 4 * kGiB, kGiB, 140 * kGiB),
      AllOf(HasSubstr("cuda:1 has no 4294967296 bytes (4.0 GiB)"), HasSubstr("1.0 GiB of its 140.0 GiB are free"),
            HasSubstr("3.0 GiB are missing"), HasSubstr("lower the batch size")));
}

TEST(OutOfMemory, NothingIsMissingWhereItIsScattered) {
  EXPECT_THAT(out_of_memory("cuda:0", 4 * kGiB, 5 * kGiB, 140 * kGiB),
              AllOf(HasSubstr("not in one piece"), Not(HasSubstr("missing"))));
}

}  // namespace
}  // namespace gradring::kernels
