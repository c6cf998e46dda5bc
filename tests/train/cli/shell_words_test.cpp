// SPDX-License-Identifier: Apache-2.0
#include "train/cli/shell_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace gradring::train {
namespace {

TEST(ShellCommand, QuotesOnlyWhatItMust) {
  EXPECT_EQ(shell_quoted("a/b_c.d=e,f:g-h"), "a/b_c.d=e,f:g-h");
  for (const char* word : {"", "a b", "$x", "*", "~", "a;b", "\"", "#", "a\nb"})
    EXPECT_EQ(shell_quoted(word), "'" + std::string(word) + "'");
  EXPECT_EQ(shell_command(std::vector<std::string>{"a", "b c", ""}), "a 'b c' ''");
}

}  // namespace
}  // namespace gradring::train
