// SPDX-License-Identifier: Apache-2.0
#include "nn/models/expression.h"

#include <gmock/gmock.h>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

constexpr std::int64_t kLargest = 9'223'372'036'854'775'807;

std::string error_of(std::string_view expression) {
  try {
    evaluate(expression, {{"width", 8}, {"classes", 10}});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Expression, HasTheUsualPrecedence) {
  const Values values = {{"width", 8}, {"_b2", 3}, {"large", kLargest}};
  const std::pair<std::string_view, std::int64_t> cases[] = {
      {"7", 7},
      {" width ", 8},
      {"2*width+1", 17},
      {"1 + 2 * width", 17},
      {"(1 + 2) * width", 24},
      {"20 - 8 - 2", 10},
      {"64 / 4 / 2", 8},
      {"64 / (4 / 2)", 32},
      {"-width + 10", 2},
      {"2 - -3", 5},
      {"2 * -_b2", -6},
      {"9223372036854775807", kLargest},
      {"-large - 1", -kLargest - 1},
  };
  for (const auto& [expression, value] : cases) EXPECT_EQ(evaluate(expression, values), value) << expression;
}

TEST(Expression, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "found the end, expected an integer, a name or ("},
      {"2 *", "found the end, expected an integer, a name or ("},
      {"widht", "'widht' has no value, expected one of classes, width. Did you mean 'width'?"},
      {"7 / 2", "7 / 2 leaves a remainder"},
      {"7 / (width - 8)", "7 / 0 divides by zero"},
      {"9223372036854775807 + 1", "9223372036854775807 + 1 is outside the range of 64-bit integers"},
      {"9223372036854775807 * 2", "9223372036854775807 * 2 is outside the range of 64-bit integers"},
      {"(-9223372036854775807 - 1) / -1", "0 - -9223372036854775808 is outside the range of 64-bit integers"},
      {"9223372036854775808", "an integer is above 2^63 - 1"},
      {"2x", "'2x' is no integer"},
      {"1.5", "found '.', expected an operator or the end"},
      {"2 3", "found '3', expected an operator or the end"},
      {"(1", "a ) is missing"},
      {"1)", "found ')', expected an operator or the end"},
      {"2 ** 3", "found '*', expected an integer, a name or ("},
      {"16 \u2212 8", "found '\u2212', expected an operator or the end"},
      {"2 *\n8", "found '\\x0a', expected an integer, a name or ("},
      {std::string("8\0 + 8", 6), "found '\\x00', expected an operator or the end"},
      {"width % 2", "found '%', expected an operator or the end"},
      {std::string(100'000, '('), "more than 50 nested parentheses and signs"},
      {std::string(100'000, '-') + "1", "more than 50 nested parentheses and signs"},
  };
  for (const auto& [expression, message] : cases) EXPECT_EQ(error_of(expression), message) << expression.substr(0, 40);
}

TEST(Expression, NamesAreLettersDigitsAndUnderlines) {
  for (const char* name : {"a", "_", "width2", "A_b"}) EXPECT_TRUE(is_name(name)) << name;
  for (const char* name : {"", "2a", "a-b", "a.b", "a b", "ä"}) EXPECT_FALSE(is_name(name)) << name;
}

}  // namespace
}  // namespace gradring::nn
