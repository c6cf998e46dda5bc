// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <chrono>
#include <numeric>

#include "kernels/bench/child_process.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels::bench {
namespace {

TEST(Statistics, DescribesTheSortedValues) {
  const Statistics three = statistics_of({3, 1, 8});
  EXPECT_EQ(three.count, 3u);
  EXPECT_EQ(three.least, 1);
  EXPECT_EQ(three.median, 3);
  EXPECT_EQ(three.most, 8);
  EXPECT_EQ(three.mean, 4);
  EXPECT_EQ(statistics_of({4, 1}).median, 2.5);
}

TEST(Statistics, TakesPercentilesByNearestRank) {
  std::vector<double> values(200);
  std::iota(values.rbegin(), values.rend(), 1.0);
  EXPECT_EQ(statistics_of(values).p95, 190);
  EXPECT_EQ(statistics_of(values).p99, 198);
  EXPECT_EQ(statistics_of({7}).p95, 7);
  EXPECT_EQ(statistics_of({7, 9}).p99, 9);
}

TEST(Statistics, RejectsAnEmptyList) { EXPECT_THROW(statistics_of({}), InvalidArgument); }

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

ChildCommand shell(const std::string& body) {
  ChildCommand command;
  command.words = {"sh", "-c", body};
  return command;
}

TEST(ChildProcess, ExchangesLines) {
  ChildProcess child(shell("while read line; do echo \"<$line>\"; done"));
  EXPECT_TRUE(child.write_line("one"));
  EXPECT_TRUE(child.write_line("two"));
  EXPECT_EQ(child.read_line(soon()), "<one>");
  EXPECT_EQ(child.read_line(soon()), "<two>");
}

TEST(ChildProcess, SetsEnvironmentVariables) {
  ChildCommand command = shell("echo $GRADRING_TEST_WORD");
  command.variables = {{"GRADRING_TEST_WORD", "heard"}};
  ChildProcess child(command);
  EXPECT_EQ(child.read_line(soon()), "heard");
}

TEST(ChildProcess, ReadingAfterItsEndThrows) {
  ChildProcess child(shell("echo last; exec >&- <&-"));
  EXPECT_EQ(child.read_line(soon()), "last");
  EXPECT_THROW(child.read_line(soon()), DeviceError);
}

TEST(ChildProcess, MissingProgramEndsAtOnce) {
  ChildCommand command;
  command.words = {"/nowhere/at/all"};
  ChildProcess child(command);
  EXPECT_THROW(child.read_line(soon()), DeviceError);
  EXPECT_FALSE(child.write_line("anybody?"));
}

TEST(ChildProcess, ReadingTimesOutAtTheDeadline) {
  ChildProcess child(shell("read line"));
  EXPECT_THROW(child.read_line(Deadline::after(std::chrono::milliseconds(50))), DeviceError);
}

}  // namespace
}  // namespace gradring::kernels::bench
