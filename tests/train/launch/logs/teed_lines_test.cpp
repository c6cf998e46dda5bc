// SPDX-License-Identifier: Apache-2.0
// What a terminal shows of lines that workers write piece by piece.
#include "train/launch/logs/worker_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>

#include "kernels/base/file.h"

namespace gradring::train {
namespace {

using namespace std::chrono_literals;

class TeedLinesTest : public ::testing::Test {
 protected:
  TeedLinesTest() : TeedLinesTest(ends()) {}
  explicit TeedLinesTest(std::pair<int, int> ends) : reader_(ends.first), writer_(ends.second) {}

  static std::pair<int, int> ends() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("no pipe");
    return {ends[0], ends[1]};
  }
  static LinePrefix prefix(int rank) { return LinePrefix("${rank}|", {.rank = rank}); }
  /// What the terminal got since the last call.
  std::string shown() const {
    char buffer[64 * 1024];
    const ssize_t size = ::read(reader_.get(), buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  /// Waits until the incomplete line is due, and shows it.
  static void show(TeedLines& lines) {
    for (const auto deadline = Deadline::after(20s); lines.due() && !deadline.passed();) {
      sleep_for(lines.due()->nap());
      lines.show();
    }
  }

  const UniqueFd reader_, writer_;
  Terminal terminal_{writer_.get()};
  TeedLines zero_{prefix(0), terminal_}, one_{prefix(1), terminal_};
};

TEST_F(TeedLinesTest, CompleteLinesAreShownAtOnce) {
  zero_.take("a\nb\n\nc");
  EXPECT_EQ(shown(), "0|a\n0|b\n0|\n");
  one_.take("d\n");
  EXPECT_EQ(shown(), "1|d\n");
  zero_.take("e\n");
  EXPECT_EQ(shown(), "0|ce\n") << "the pieces of a line that are written soon after each other stay together";
  EXPECT_FALSE(zero_.due());
}

TEST_F(TeedLinesTest, AnIncompleteLineIsShownAndContinued) {
  zero_.take("continue? ");
  EXPECT_EQ(shown(), "");
  show(zero_);
  EXPECT_EQ(shown(), "0|continue? ");
  zero_.take("yes\n");
  EXPECT_EQ(shown(), "yes\n");
}

TEST_F(TeedLinesTest, AnotherWorkersLineEndsIt) {
  zero_.take("12 ");
  show(zero_);
  one_.take("other\n");
  zero_.take("34\n");
  EXPECT_EQ(shown(), "0|12 \n1|other\n0|34\n");
}

TEST_F(TeedLinesTest, TheLaunchersOwnLineEndsIt) {
  zero_.take("12 ");
  show(zero_);
  terminal_.write("launcher\n");
  EXPECT_EQ(shown(), "0|12 \nlauncher\n");
  zero_.take("\n");
  EXPECT_EQ(shown(), "") << "the line has ended already";
}

TEST_F(TeedLinesTest, AnIncompleteLineLetsAnotherStandForASecond) {
  zero_.take("12");
  show(zero_);
  one_.take("ab");
  EXPECT_GT(one_.due()->remaining(), 500ms);
  zero_.take("34");
  EXPECT_LT(zero_.due()->remaining(), 500ms) << "its own line it continues";
  show(zero_);
  show(one_);
  EXPECT_EQ(shown(), "0|1234\n1|ab");
}

TEST_F(TeedLinesTest, ThePrefixFollowsACarriageReturn) {
  for (const char* step : {"\rstep 1", "\rstep 2"}) {
    zero_.take(step);
    show(zero_);
  }
  EXPECT_EQ(shown(), "0|step 1\r0|step 2");
  zero_.take("\r\n\r\nx\r\n");
  EXPECT_EQ(shown(), "\r\n0|\n0|x\r\n");
}

TEST_F(TeedLinesTest, ALineEndAfterACarriageReturnMayComeLater) {
  zero_.take("done\r");
  show(zero_);
  zero_.take("\n");
  EXPECT_EQ(shown(), "0|done\r\n");
}

TEST_F(TeedLinesTest, TheEndOfAWorkerEndsItsLine) {
  zero_.take("12");
  zero_.finish();
  EXPECT_EQ(shown(), "0|12\n");
  one_.take("ab");
  show(one_);
  one_.finish();
  EXPECT_EQ(shown(), "1|ab\n");
}

TEST_F(TeedLinesTest, ALongLineStaysOne) {
  zero_.take(std::string(40'000, 'x'));
  zero_.take(std::string(40'000, 'x'));
  std::string line;
  while (line.size() < 80'002) {
    const std::string piece = shown();
    ASSERT_FALSE(piece.empty()) << line.size();
    line += piece;
    terminal_.catch_up();
  }
  EXPECT_EQ(line, "0|" + std::string(80'000, 'x'));
}

TEST_F(TeedLinesTest, TwoStreamsOfOneTerminalShareItsLine) {
  Terminal err(writer_.get());
  err.share_line(terminal_);
  TeedLines other(prefix(1), err);
  zero_.take("12");
  show(zero_);
  other.take("error\n");
  EXPECT_EQ(shown(), "0|12\n1|error\n");
}

TEST_F(TeedLinesTest, WaitsWhileTheReaderPauses) {
  const std::string line(4000, 'x');
  while (!terminal_.is_behind()) terminal_.write(line + "\n");
  zero_.take("12");
  EXPECT_FALSE(zero_.due()) << "nothing would be written";
}

}  // namespace
}  // namespace gradring::train
