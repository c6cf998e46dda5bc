// SPDX-License-Identifier: Apache-2.0
#include "train/options/parse_value.h"

#include <gtest/gtest.h>

#include "tests/data/support/message_of.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using tests::message_of;
using namespace std::chrono_literals;

constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

template <class Parse>
void expect_refused(Parse parse, std::initializer_list<std::string_view> texts) {
  for (std::string_view text : texts) EXPECT_THROW(parse(text), UsageError) << "'" << text << "'";
}

TEST(ParseInteger, TakesWholeNumbersWithinItsRange) {
  EXPECT_EQ(parse_integer("steps", "0", {}), 0);
  EXPECT_EQ(parse_integer("steps", "007", {}), 7);
  EXPECT_EQ(parse_integer("steps", std::to_string(kLargest), {}), kLargest);
  EXPECT_EQ(parse_integer("x", "-3", {.least = -3}), -3);
}

TEST(ParseInteger, RejectsTheRest) {
  expect_refused(
      [](auto text) { parse_integer("batch-size", text, {.least = 1}); },
      {"", "0", "-1", "1.5", "1e3", "0x10", "+1", " 1", "1 ", "1k", "one", "2147483648", "99999999999999999999"});
}

TEST(ParseInteger, SaysWhatWasGivenAndWhatIsExpected) {
  EXPECT_EQ(message_of<UsageError>([] { parse_integer("batch-size", "0", {.least = 1, .most = 9}); }),
            "--batch-size is '0', but must be a whole number from 1 to 9");
}

TEST(ParseSeed, TakesAll64Bits) {
  EXPECT_EQ(parse_seed("seed", "18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  expect_refused([](auto text) { parse_seed("seed", text); }, {"", "-1", "18446744073709551616", "1.0", "x"});
}

TEST(ParseNumber, TakesDecimalsAndExponents) {
  EXPECT_EQ(parse_number("lr", "0", 0), 0);
  EXPECT_EQ(parse_number("lr", "1e-3", 0), 1e-3);
  EXPECT_EQ(parse_number("lr", ".5", 0), 0.5);
  EXPECT_EQ(parse_number("lr", "-2", -2), -2);
}

TEST(ParseNumber, RejectsWhatIsNotFiniteOrNoNumber) {
  expect_refused([](auto text) { parse_number("lr", text, 0); },
                 {"", "nan", "inf", "-inf", "-0.1", "1e999", "1,5", "0x1p3", "+1", "1 ", "fast"});
}

TEST(ParseFloat, TakesWhatFp32Holds) {
  for (const char* text : {"0", "1e-37", "1.5", "3.4e38"})
    EXPECT_EQ(parse_float("lr", text, 0), parse_number("lr", text, 0)) << text;
  expect_refused([](auto text) { parse_float("lr", text, 0); }, {"", "nan", "-1", "1e-39", "1e-300", "3.5e38", "1e39"});
  EXPECT_EQ(message_of<UsageError>([] { parse_float("lr", "1e39", 0); }),
            "--lr is '1e39', but must be 0 or a number from 1.18e-38 to 3.4e+38, the range of fp32");
}

TEST(ParseFlag, KnowsFourWords) {
  EXPECT_TRUE(parse_flag("nesterov", "true"));
  EXPECT_TRUE(parse_flag("nesterov", "1"));
  EXPECT_FALSE(parse_flag("nesterov", "false"));
  EXPECT_FALSE(parse_flag("nesterov", "0"));
  expect_refused([](auto text) { parse_flag("nesterov", text); }, {"", "yes", "TRUE", "2"});
}

TEST(ParseDuration, KnowsItsUnits) {
  EXPECT_EQ(parse_duration("timeout", "500ms"), 500ms);
  EXPECT_EQ(parse_duration("timeout", "30s"), 30s);
  EXPECT_EQ(parse_duration("timeout", "2m"), 2min);
  EXPECT_EQ(parse_duration("timeout", "30"), 30s);
  EXPECT_EQ(parse_duration("timeout", "0.29s"), 290ms);  // 0.29 * 1000 is a little less than 290
}

TEST(ParseDuration, RejectsNoneAndForever) {
  expect_refused([](auto text) { parse_duration("timeout", text); },
                 {"", "0", "0s", "-1s", "0.1ms", "s", "ms", "1h", "1 s", "inf", "nan", "1e300", "1e10m"});
}

TEST(ParseMegabytes, TakesFractions) {
  EXPECT_EQ(parse_megabytes("bucket-mb", "1"), 1u << 20);
  EXPECT_EQ(parse_megabytes("bucket-mb", "0.5"), 1u << 19);
  expect_refused([](auto text) { parse_megabytes("bucket-mb", text); }, {"", "0", "-1", "1e-9", "1e7", "1MB", "nan"});
}

TEST(ParseWord, NamesAllWordsAndTheNearest) {
  constexpr std::string_view kWords[] = {"adam", "adamw", "sgd"};
  EXPECT_EQ(parse_word("optimizer", "adamw", kWords), "adamw");
  const std::string message = message_of<UsageError>([&] { parse_word("optimizer", "Adam", kWords); });
  EXPECT_EQ(message, "--optimizer is 'Adam', but must be one of adam, adamw, sgd. Did you mean 'adam'?");
  expect_refused([&](auto text) { parse_word("optimizer", text, kWords); }, {"", "adam ", "ada"});
}

TEST(ShowDuration, IsReadBackAsTheSame) {
  for (const auto duration : {1ms, 999ms, 1000ms, 1500ms, 30000ms})
    EXPECT_EQ(parse_duration("timeout", show_duration(duration)), duration);
  EXPECT_EQ(show_duration(30s), "30s");
}

TEST(ShowMegabytes, IsReadBackAsTheSame) {
  for (const std::size_t bytes : {1ul, 3ul, 1ul << 19, (1ul << 20) + 1, 25ul << 20})
    EXPECT_EQ(parse_megabytes("bucket-mb", show_megabytes(bytes)), bytes);
}

}  // namespace
}  // namespace gradring::train
