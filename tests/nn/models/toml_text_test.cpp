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

std::string reason_of_refusal(const std::string& text) {
  try {
    parse_toml(text);
  } catch (const TomlError& error) {
    return error.what();
  }
  return "no error";
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

TEST(TomlText, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"a = [1", "the file ends in a list, expected ]"},
      {"a = { b = 1", "the file ends in a table, expected }"},
      {"a = \"b", "the file ends in a string, expected a quote"},
      {"a = 'b", "the file ends in a string, expected a quote"},
      {"a", "the file ends too early"},
      {"a = 'b\n'", "a string has a line break or another control character, expected a quote before"},
      {"a = \"\\q\"", "a string has an unknown escape, expected \\\\ for a backslash"},
      {"# \x01", "a comment has a control character"},
      {"a = [1 2]", "expected , or ] in a list, found '2'"},
      {"a = [1,, 2]", "expected a value or ] in a list, found comma"},
      {"a = { b = 1 c = 2 }", "expected , or } in a table, found 'c'"},
      {"a = { b = 1, }", "a table has a comma before its }"},
      {"a = { b = 1,\n c = 2 }", "expected a key or } in a table, on the same line, found the end of the line"},
      {"a: 1", "expected = after a key, found ':'"},
      {"a =\n", "expected a value after =, found the end of the line"},
      {"a = 1 2", "expected the end of the line after a value, found '2'"},
      {"a = { \u00e9 = 1 }", "expected a key or } in a table, on the same line, found '\u00e9'"},
      {"[a\nb = 1", "expected ] after the name of a table, found the end of the line"},
      {"{}", "expected a key, [TABLE] or a comment, found '{'"},
      {"a = 1\rb = 2", "a line ends with a carriage return only, found 'b'"},
      {"a = '\xff'", "a character is not UTF-8"},
      {"a = 1\nb.c = 2\nb.c = 3", "'b.c' is defined twice"},
      {"[a]\n[a]", "'a' is defined twice"},
      {"a = 9223372036854775808", "'9223372036854775808' is outside the range of 64-bit integers"},
      {"a = 1\n\u00e9 = 2", "expected a key, [TABLE] or a comment, found '\u00e9'"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(reason_of_refusal(text), message) << text;
  for (const char* word : {"flat", "True", "yes", "None", "08", "3x3", "1.", ".5", "_a", "\u201ca\u201d", "2024-13-01",
                           "0x", "1__0", "+nan1", "inf8"})
    EXPECT_EQ(reason_of_refusal("# \u00e9\nb = { 'c' = 1, a = " + std::string(word) + " }"),
              "'" + std::string(word) + "' is no value, expected text in quotes, a number, true or false");
}

TEST(TomlText, WhatIsNotTomlIsRejectedWithItsLine) { EXPECT_EQ(line_of_refusal("lr = 1\nsteps = = 2\n"), 2u); }

}  // namespace
}  // namespace gradring::nn
