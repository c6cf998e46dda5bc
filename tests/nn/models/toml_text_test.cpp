// SPDX-License-Identifier: Apache-2.0
#include "nn/models/toml_text.h"

#include <gtest/gtest.h>

namespace gradring::nn {
namespace {

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

std::size_t line_of_refusal(const std::string& text) {
  try {
    parse_toml(text);
  } catch (const TomlError& error) {
    return error.line();
  }
  return 0;
}

TEST(TomlText, NestingThatWouldExhaustTheStackIsRejectedWithItsLine) {
  constexpr int kDeep = 100'000;
  EXPECT_EQ(line_of_refusal("lr = 1\na" + repeated(".a", kDeep) + " = 1\n"), 2u);
  EXPECT_EQ(line_of_refusal("\n\n[a" + repeated(".a", kDeep) + "]\n"), 3u);
  EXPECT_EQ(line_of_refusal("a = " + repeated("[", kDeep)), 1u);
  EXPECT_EQ(line_of_refusal("a = " + repeated("{a = ", kDeep)), 1u);
  EXPECT_EQ(line_of_refusal("\"=\"" + repeated(" . \"a\"", kDeep) + " = 1"), 1u);
}

TEST(TomlText, AFileOfOptionsMayHaveLongComments) {
  const std::string text = repeated("# See doc.md, v1.2 [sic]. 0.1 is usual.\n", 500);
  EXPECT_EQ(parse_toml(text + "lr = 0.1\n")["lr"].value<double>(), 0.1);
}

TEST(TomlText, BracketsInStringsAndCommentsDoNotCount) {
  const std::string dots = repeated("[{.", 5000);
  for (const std::string& text : {"a = '" + dots + "'", "a = \"\\\"" + dots + "\"", "# ' " + dots + "\na = 1",
                                  "a = '''\n ' " + dots + "'\n'''''", "a = \"\"\"\n\\\"\"\" " + dots + "\n\"\"\""})
    EXPECT_EQ(line_of_refusal(text), 0u) << text.substr(0, 20);
  const std::string deep = repeated("[", 100'000);
  for (const std::string& text :
       {"a = ['x', " + deep, "a = ['''x''', " + deep, "a = ['''x''''', " + deep, "a = [\"\\\\\", " + deep,
        "a = ' \nb = " + deep, "# '\na = " + deep, "a = '''' " + deep, "a = \"\"" + deep})
    EXPECT_GT(line_of_refusal(text), 0u) << text.substr(0, 20);
}

/// The deepest that is let through is destroyed within any usual stack.
TEST(TomlText, TakesWhatIsJustNotTooDeep) {
  EXPECT_EQ(line_of_refusal("a" + repeated(".a", 4096) + " = 1"), 0u);
  EXPECT_EQ(line_of_refusal("a" + repeated(".a", 4097) + " = 1"), 1u);
}

TEST(TomlText, WhatIsNotTomlIsRejectedWithItsLine) { EXPECT_EQ(line_of_refusal("lr = 1\nsteps = = 2\n"), 2u); }

}  // namespace
}  // namespace gradring::nn
