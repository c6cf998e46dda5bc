// SPDX-License-Identifier: Apache-2.0
#include "train/options/shell_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace gradring::train {
namespace {

TEST(ShellWords, AreQuotedWhereTheyHaveToBe) {
  EXPECT_EQ(shell_quoted("a/b_c.d=e,f:g-h"), "a/b_c.d=e,f:g-h");
  for (const char* word : {"a b", "$HOME", "a;b", "a|b", "~", "a*", "", "\"", "\\", "ü"})
    EXPECT_EQ(shell_quoted(word), "'" + std::string(word) + "'");
  EXPECT_EQ(shell_command(std::vector<std::string>{"a", "b c", ""}), "a 'b c' ''");
}

TEST(ShellWords, ShowNoControlCharacters) {
  EXPECT_EQ(shell_quoted("a\033[2J"), "$'a\\033[2J'");
  EXPECT_EQ(shell_quoted("it's\n\\\u202e"), "$'it\\'s\\012\\\\\\342\\200\\256'");
}

TEST(ShellWords, AreReadBackByAShell) {
  const std::string word = "a 'b' \\ \"c\" $HOME \033[2J\n\u202e\xff`d`";
  const auto end =
      tests::run_program({.command = {"/bin/bash", "-c", "printf %s " + shell_quoted(word)}, .folder = "/"});
  EXPECT_EQ(end.out, word) << end.err;
}

}  // namespace
}  // namespace gradring::train
