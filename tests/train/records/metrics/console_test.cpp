// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/file.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Pipe {
  explicit Pipe(int flags = 0) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | flags) != 0) throw std::runtime_error("no pipe");
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
  }
  UniqueFd reader, writer;
};

class ConsoleTest : public ::testing::Test {
 protected:
  /// Writes twice; returns the reports.
  std::vector<std::string> lose_two_lines(Console& console) {
    console.on_failure([this](const std::string& message) { reported_.push_back(message); });
    console.write("one\n");
    console.write("two\n");
    return reported_;
  }

  std::vector<std::string> reported_;
};

TEST_F(ConsoleTest, WritesImmediately) {
  const Pipe pipe;
  Console console(pipe.writer.get());
  console.write("a line\n");
  char text[16];
  EXPECT_EQ(::read(pipe.reader.get(), text, sizeof text), 7);
  EXPECT_NO_THROW(console.finish());
}

TEST_F(ConsoleTest, ReportsClosedReaderOnce) {
  Pipe pipe;
  pipe.reader.reset();
  Console console(pipe.writer.get());
  EXPECT_THAT(lose_two_lines(console), ElementsAre("cannot write standard output: Broken pipe"));
  EXPECT_NO_THROW(console.finish()) << "a closed reader is no failure";
}

TEST_F(ConsoleTest, ReportsFullDiskOnceAndThrowsInFinish) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console(full.get());
  EXPECT_THAT(lose_two_lines(console), ElementsAre("cannot write standard output: No space left on device"));
  EXPECT_THROW(console.finish(), EnvironmentError);
}

TEST_F(ConsoleTest, ReportsClosedTerminalWithoutThrowing) {
  UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal && ::grantpt(terminal.get()) == 0 && ::unlockpt(terminal.get()) == 0);
  const UniqueFd line(::open(::ptsname(terminal.get()), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  terminal.reset();
  Console console(line.get());
  EXPECT_THAT(lose_two_lines(console), ElementsAre("cannot write standard output: Input/output error"));
  EXPECT_NO_THROW(console.finish());
}

TEST_F(ConsoleTest, ReportsEarlierFailureToLateListener) {
  Pipe pipe;
  pipe.reader.reset();
  Console console(pipe.writer.get());
  console.write("lost\n");
  console.on_failure([this](const std::string& message) { reported_.push_back(message); });
  EXPECT_THAT(reported_, ElementsAre(HasSubstr("Broken pipe")));
}

TEST_F(ConsoleTest, WritesEverythingToNonBlockingPipe) {
  const Pipe pipe(O_NONBLOCK);
  Console console(pipe.writer.get());
  constexpr std::size_t kBytes = 1 << 20;  // more than a pipe holds
  std::size_t read = 0;
  std::thread reader([&] {
    char text[4096];
    while (read < kBytes) {
      const ssize_t size = ::read(pipe.reader.get(), text, sizeof text);
      size > 0 ? void(read += static_cast<std::size_t>(size)) : std::this_thread::yield();
    }
  });
  EXPECT_TRUE(lose_two_lines(console).empty());
  console.write(std::string(kBytes - 8, 'x'));
  console.finish();
  reader.join();
  EXPECT_EQ(read, kBytes);
  EXPECT_THAT(reported_, IsEmpty());
}

/// Finishes the console while a reader takes everything from the pipe; returns what it has read, up to "last".
std::string read_to_the_end(Console& console, const Pipe& pipe) {
  console.write("last\n");
  std::string text;
  std::thread reader([&] {
    char piece[4096];
    while (!text.ends_with("last\n"))
      text.append(piece, static_cast<std::size_t>(::read(pipe.reader.get(), piece, sizeof piece)));
  });
  console.finish();
  reader.join();
  return text;
}

TEST_F(ConsoleTest, DoesNotBlockOnPausedReader) {
  const Pipe pipe;
  constexpr std::size_t kBytes = 1 << 20;  // more than a pipe holds
  Console console(pipe.writer.get());
  console.write(std::string(kBytes, 'x'));  // returns, although nobody reads
  EXPECT_EQ(read_to_the_end(console, pipe).size(), kBytes + 5);
}

TEST_F(ConsoleTest, FinishesWithoutAReaderThatReads) {
  const Pipe pipe;
  Console console(pipe.writer.get());
  console.write(std::string(1 << 20, 'x'));  // more than a pipe holds
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(console.finish(std::chrono::milliseconds(10)));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("standard output was not read for 0.01 s: its last "));
  EXPECT_NO_THROW(console.finish());
}

TEST_F(ConsoleTest, DropsOldestTextBeyondLimit) {
  const Pipe pipe;
  Console console(pipe.writer.get());
  for (int i = 0; i < 64; ++i) console.write(std::string(1 << 18, 'x'));
  const std::string text = read_to_the_end(console, pipe);
  EXPECT_THAT(text, HasSubstr("(output dropped: the reader is too slow)"));
  EXPECT_LT(text.size(), std::size_t{8} << 20);
}

TEST(PrintToStderr, SurvivesClosedReader) {
  const Console ignores_sigpipe(STDOUT_FILENO);
  Pipe pipe;
  pipe.reader.reset();
  const UniqueFd before(::dup(STDERR_FILENO));
  ::dup2(pipe.writer.get(), STDERR_FILENO);
  print_to_stderr("lost\n");
  ::dup2(before.get(), STDERR_FILENO);
  SUCCEED();
}

}  // namespace
}  // namespace gradring::train
