// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/philox.h"

#include <gtest/gtest.h>

namespace gradring::kernels {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The three vectors for philox4x32-10 in Random123's kat_vectors. Its words stand lowest first.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_from(0), 0.0f);
  EXPECT_EQ(uniform_from(0x80000000u), 0.5f);
  EXPECT_LT(uniform_from(0xffffffffu), 1.0f);
}

}  // namespace
}  // namespace gradring::kernels
