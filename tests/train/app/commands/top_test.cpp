// SPDX-License-Identifier: Apache-2.0
// gradring top, in a pseudo-terminal and without one.
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "kernels/base/file.h"
#include "kernels/simt/engine/sanitizer.h"
#include "tests/train/app/commands/support/run_directories.h"
#include "train/core/setup/run_lock.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEnter = "\033[?1049h";
constexpr const char* kLeave = "\033[?25h\033[?1049l";

/// A program that runs in a terminal of its own.
class InTerminal {
 public:
  InTerminal(const ProgramSpec& spec, const char* term) {
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    pid_ = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (pid_ == 0) {
      std::vector<char*> words;
      for (const std::string& word : spec.command) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      if (::chdir(spec.folder.c_str()) == 0 && ::setenv("TERM", term, 1) == 0 && ::setenv("LC_ALL", "C.UTF-8", 1) == 0)
        ::execv(words[0], words.data());
      ::_exit(127);
    }
    terminal_ = UniqueFd(terminal);
  }
  ~InTerminal() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  /// Reads until the terminal was sent `text`, since the last call, or nothing comes for a minute.
  bool shows(const std::string& text) {
    std::size_t at = shown_.find(text, seen_);
    while (at == shown_.npos && read_some()) at = shown_.find(text, seen_);
    if (at != shown_.npos) seen_ = at + text.size();
    return at != shown_.npos;
  }
  void type(const std::string& keys) const { EXPECT_EQ(gradring::write_all(terminal_.get(), keys), 0); }
  void resize(unsigned short rows, unsigned short columns) const {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(terminal_.get(), TIOCSWINSZ, &size), 0);
  }
  bool echoes() const {
    termios settings{};
    return ::tcgetattr(terminal_.get(), &settings) == 0 && (settings.c_lflag & ECHO) != 0;
  }
  pid_t pid() const { return pid_; }
  /// The exit code; reads the rest of its output.
  int wait() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& shown() const { return shown_; }
  /// The exit code, within a minute; reads no output.
  int ended() {
    int status = 0;
    for (int i = 0; i < 600; ++i) {
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return -1;
  }

 private:
  bool read_some() {
    pollfd fd{.fd = terminal_.get(), .events = POLLIN, .revents = 0};
    char text[4096];
    if (::poll(&fd, 1, 60'000) <= 0) return false;
    const ssize_t size = ::read(terminal_.get(), text, sizeof text);  // EIO once the program has ended
    if (size > 0) shown_.append(text, static_cast<std::size_t>(size));
    return size > 0;
  }

  pid_t pid_ = -1;
  UniqueFd terminal_;
  std::string shown_;
  std::size_t seen_ = 0;
};

/// A run whose events the test writes, while this process holds its lock.
class Top : public ::testing::Test {
 protected:
  Top() {
    std::filesystem::create_directories(run_ / "logs");
    write(train::RunHeader{.model = "convnet", .ranks = 2, .steps_per_epoch = 10, .total_steps = 100});
    lock_ = train::RunLock(run_, {});
    step(1);
  }
  void write(train::RunEvent event) const {
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    std::ofstream(run_ / "metrics.jsonl", std::ios::app)
        << train::to_line({.time = now, .event = std::move(event)}) << '\n';
  }
  void step(std::int64_t step) const { write(train::StepRecord{.step = step, .epoch = 1, .loss = 1, .samples = 64}); }
  void end() {
    write(train::EndRecord{.steps = 2});
    lock_.release();
  }
  ProgramSpec top(const Words& more = {}) const {
    return place_.gradring(joined({"top", "run", "--interval", "100ms"}, more));
  }

  Workplace place_;
  std::filesystem::path run_ = place_.path("run");
  train::RunLock lock_;
};

TEST_F(Top, FollowsTheRunAndLeavesItsResultAtTheEnd) {
  InTerminal terminal(top(), "xterm");
  ASSERT_TRUE(terminal.shows(kEnter));
  ASSERT_TRUE(terminal.shows("step 1/100"));
  EXPECT_FALSE(terminal.echoes());
  step(2);
  ASSERT_TRUE(terminal.shows("step 2/100"));
  end();
  ASSERT_TRUE(terminal.shows(kLeave));
  ASSERT_TRUE(terminal.shows("run: finished"));
  EXPECT_TRUE(terminal.echoes());
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Top, LeavesTheTerminalAsItWas) {
  for (const char* keys : {"q", "\003"}) {
    InTerminal terminal(top(), "xterm");
    ASSERT_TRUE(terminal.shows("step 1/100"));
    terminal.type(keys);
    ASSERT_TRUE(terminal.shows(kLeave));
    EXPECT_EQ(terminal.wait(), 0);
  }
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    InTerminal terminal(top(), "xterm");
    ASSERT_TRUE(terminal.shows("step 1/100"));
    ::kill(terminal.pid(), signal);
    EXPECT_EQ(terminal.wait(), 128 + signal);
    EXPECT_THAT(terminal.shown(), HasSubstr(kLeave));
  }
}

/// Within a write to a terminal that is stopped by Ctrl-S, as within any other call that does not return.
TEST_F(Top, EndsOnASignalWhileItsTerminalTakesNothing) {
  for (const auto& [signal, code] : {std::pair(SIGTERM, 128 + SIGTERM), std::pair(SIGINT, 0)}) {
    InTerminal terminal(top(), "xterm");
    ASSERT_TRUE(terminal.shows("step 1/100"));
    terminal.type("\023");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(terminal.pid(), signal);
    EXPECT_EQ(terminal.ended(), code);
  }
}

TEST_F(Top, TakesNoMemoryForRanksThatAHeaderPromises) {
  if (simt::detail::kAddressSanitizer || simt::detail::kThreadSanitizer)
    GTEST_SKIP() << "sanitizers reserve more memory than the limit";
  for (const char* ranks : {"131072", "2000000000"}) {
    std::ofstream(run_ / "metrics.jsonl")
        << R"({"event":"header","time":1,"ranks":)" << ranks << R"(,"model":"m"})" << '\n';
    ProgramSpec spec = place_.gradring({"top", "run", "--once"});
    spec.command.insert(spec.command.begin(), {"/bin/sh", "-c", "ulimit -v 262144; exec \"$@\"", "sh"});
    const ProgramEnd end = run_program(spec);
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_LT(end.out.size(), 100'000u);
  }
}

TEST_F(Top, StopsAndGoesOnWithItsScreen) {
  InTerminal terminal(top(), "xterm");
  ASSERT_TRUE(terminal.shows("step 1/100"));
  terminal.type("\032");  // Ctrl-Z
  ASSERT_TRUE(terminal.shows(kLeave));
  int status = 0;
  ASSERT_EQ(::waitpid(terminal.pid(), &status, WUNTRACED), terminal.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(terminal.echoes());
  ::kill(terminal.pid(), SIGCONT);
  ASSERT_TRUE(terminal.shows(kEnter));
  ASSERT_TRUE(terminal.shows("step 1/100"));
  terminal.type("q");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Top, AdaptsToTheSizeOfTheTerminal) {
  InTerminal terminal(top(), "xterm");
  ASSERT_TRUE(terminal.shows("steps/s"));
  terminal.resize(24, 14);
  ASSERT_TRUE(terminal.shows("run: running,…"));
  terminal.type("q");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Top, WritesPlainLinesWithoutATerminal) {
  RunningProgram program(top());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  end();
  const ProgramEnd ended = program.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("step 1/100 (1 %)"), HasSubstr("finished"), Not(HasSubstr("\033"))));
  InTerminal dumb(top(), "dumb");
  EXPECT_EQ(dumb.wait(), 0);
  EXPECT_THAT(dumb.shown(), AllOf(HasSubstr("finished"), Not(HasSubstr("\033"))));
}

TEST_F(Top, PrintsOneFrameWithOnce) {
  const ProgramEnd end = place_.run({"top", "run", "--once"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("run: running"), HasSubstr("rank state"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace gradring::tests
