// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/markdown.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gradring::train::markdown {
namespace {

TEST(Markdown, EscapesBarsInTablesOnly) {
  EXPECT_EQ(code("a|b"), "`a|b`") << "an escape would be shown";
  const std::vector<std::vector<std::string>> rows = {{"name", "value"}, {code("a|b"), plain("c|d")}};
  EXPECT_EQ(table(rows),
            "| name | value |\n"
            "| --- | --- |\n"
            R"(| `a\|b` | c\|d |)"
            "\n");
}

TEST(Markdown, FencesCodeWithMoreBackticksThanItHas) {
  EXPECT_EQ(code("x"), "`x`");
  EXPECT_EQ(code("a``b`c"), "``` a``b`c ```");
  EXPECT_EQ(code("two\nlines"), "`two lines`");
}

}  // namespace
}  // namespace gradring::train::markdown
