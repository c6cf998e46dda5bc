// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/child_process.h"

#include <gtest/gtest.h>

#include <chrono>

#include "kernels/base/error.h"

namespace gradring {
namespace {

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
}  // namespace gradring
