// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/printable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <new>
#include <utility>

#include "kernels/base/file.h"
#include "kernels/base/in_quotes.h"

namespace gradring {
namespace {

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\033[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable(std::string_view("\0\t\n\r\x7f", 5)), "\\x00\\x09\\x0a\\x0d\\x7f");
  EXPECT_EQ(printable("\u0080\u009b2J"), "\\u0080\\u009b2J") << "C1: some terminals take U+009B as ESC [";
  EXPECT_EQ(printable("\u2028\u2029"), "\\u2028\\u2029");
}

TEST(InQuotes, CutsBetweenCharacters) {
  EXPECT_EQ(in_quotes("a\n"), "'a\\x0a'");
  EXPECT_EQ(in_quotes(std::string(100, 'a')), "'" + std::string(100, 'a') + "'");
  EXPECT_EQ(in_quotes(std::string(99, 'a') + "\u00e9"), "'" + std::string(99, 'a') + "...'");
  EXPECT_EQ(shortened("a\u00e9b", 3), "a\u00e9...");
  EXPECT_EQ(shortened("a\u00e9b", 2), "a...");
}

TEST(Printable, EscapesControlsOfTheDirection) {
  for (const auto& [text, shown] :
       {std::pair("\u061c", "\\u061c"), std::pair("\u200e", "\\u200e"), std::pair("\u200f", "\\u200f"),
        std::pair("\u202a", "\\u202a"), std::pair("\u202e", "\\u202e"), std::pair("\u2066", "\\u2066"),
        std::pair("\u2069", "\\u2069")})
    EXPECT_EQ(printable(std::string("runs/") + text + "gnp.exe"), std::string("runs/") + shown + "gnp.exe");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("a\xff\xfe"), "a\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
  EXPECT_EQ(printable("caf\xc3"), "caf\\xc3") << "cut off";
}

TEST(Printable, LeavesEveryOtherCharacter) {
  for (const char* text : {"", "runs/a b", "Zürich", "模型", "نموذج", "👩‍🔬", "…█▁", "\\x1b"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, KeepsWhatIsAskedFor) { EXPECT_EQ(printable("one\ttwo\nthree\033", "\n\t"), "one\ttwo\nthree\\x1b"); }

TEST(Printable, LeavesJsonEqual) {
  EXPECT_EQ(printable_json("{\n  \"a\": \"\u202e\u009b\x7f\"\n}"), "{\n  \"a\": \"\\u202e\\u009b\\u007f\"\n}");
  EXPECT_EQ(printable_json("\"ü\""), "\"ü\"");
}

/// What print_to_stderr writes.
std::string shown_on_stderr(std::string_view text) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::bad_alloc();
  const UniqueFd reader(ends[0]), before(::dup(STDERR_FILENO));
  UniqueFd writer(ends[1]);
  ::dup2(writer.get(), STDERR_FILENO);
  print_to_stderr(text);
  ::dup2(before.get(), STDERR_FILENO);
  writer.reset();
  std::array<char, 4096> shown{};
  const ssize_t size = ::read(reader.get(), shown.data(), shown.size());
  return {shown.data(), static_cast<std::size_t>(size)};
}

TEST(Printable, IsWhatReachesStderr) {
  EXPECT_EQ(shown_on_stderr("\033cannot read a\033]0;x\a\xff:\n\tno such file\n"),
            "\\x1bcannot read a\\x1b]0;x\\x07\\xff:\n\tno such file\n");
}

}  // namespace
}  // namespace gradring
