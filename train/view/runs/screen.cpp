// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/screen.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kEnter = "\033[?1049h\033[?25l";  // alternate screen, no cursor
constexpr std::string_view kLeave = "\033[0m\033[?25h\033[?1049l";

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/// What the handler puts back.
struct TerminalBefore {
  int input = -1, output = -1;
  bool has_keys = false;
  termios settings{};
};
TerminalBefore terminal_before;

/// Calls only what a handler may (signal-safety(7)), and nothing that waits: the terminal may be stopped by Ctrl-S.
extern "C" void end_program(int signal) {
  pollfd room{.fd = terminal_before.output, .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, 0) == 1)
    if (::write(terminal_before.output, kLeave.data(), kLeave.size()) < 0) ::_exit(128 + signal);
  if (terminal_before.has_keys) ::tcsetattr(terminal_before.input, TCSANOW, &terminal_before.settings);
  ::_exit(signal == SIGINT ? 0 : 128 + signal);
}

std::string_view begin_of(LineStyle style) {
  switch (style) {
    case LineStyle::strong: return "\033[1m";
    case LineStyle::warning: return "\033[33m";
    case LineStyle::error: return "\033[31m";
    case LineStyle::normal: break;
  }
  return "";
}

}  // namespace

Screen::Screen(int input, int output, bool styled)
    : input_(input),
      output_(output),
      styled_(styled),
      has_keys_(::isatty(input_) != 0 && ::tcgetattr(input_, &before_) == 0) {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGTSTP, SIGCONT, SIGWINCH}) ::sigaddset(&signals_, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  signal_fd_ = UniqueFd(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd_) {
    const std::error_code error(errno, std::generic_category());
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    throw EnvironmentError("cannot receive signals: " + error.message() + "; use gradring top --once");
  }
  terminal_before = {.input = input_, .output = output_, .has_keys = has_keys_, .settings = before_};
  struct sigaction ending {};
  ending.sa_handler = end_program;
  ::sigfillset(&ending.sa_mask);
  for (std::size_t i = 0; i < handlers_before_.size(); ++i) {
    ::sigaction(kEndingSignals[i], nullptr, &handlers_before_[i]);
    if (handlers_before_[i].sa_handler != SIG_IGN) ::sigaction(kEndingSignals[i], &ending, nullptr);
  }
  enter();
}

Screen::~Screen() {
  while (on_signal() == Wake::redraw) {  // may stop the process, and then enters again
  }
  leave();
  for (std::size_t i = 0; i < handlers_before_.size(); ++i)
    ::sigaction(kEndingSignals[i], &handlers_before_[i], nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Screen::enter() {
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(input_, TCSADRAIN, &raw);
  }
  gradring::write_all(output_, kEnter);
}

void Screen::leave() {
  gradring::write_all(output_, kLeave);
  if (has_keys_) ::tcsetattr(input_, TCSADRAIN, &before_);
}

/// `time` if no signal has come.
Screen::Wake Screen::on_signal() {
  signalfd_siginfo info{};
  if (::read(signal_fd_.get(), &info, sizeof info) != sizeof info) return Wake::time;
  const auto signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGTSTP) {
    leave();
    ::kill(::getpid(), SIGSTOP);
    enter();
  }
  return Wake::redraw;
}

Screen::Wake Screen::wait(std::chrono::milliseconds interval) {
  const auto end = std::chrono::steady_clock::now() + interval;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Wake::time;
    pollfd fds[] = {{.fd = signal_fd_.get(), .events = POLLIN, .revents = 0},
                    {.fd = has_keys_ ? input_ : -1, .events = POLLIN, .revents = 0}};
    if (::poll(fds, 2, static_cast<int>(left.count())) <= 0) continue;
    if (fds[0].revents != 0)
      if (const Wake wake = on_signal(); wake != Wake::time) return wake;
    if (fds[1].revents == 0) continue;
    char keys[64];
    const ssize_t size = ::read(input_, keys, sizeof keys);
    if (size <= 0) return Wake::quit;  // the terminal is closed
    for (const char key : std::string_view(keys, static_cast<std::size_t>(size)))
      if (key == 'q' || key == 'Q' || key == 3 || key == 4) return Wake::quit;
  }
}

void Screen::draw(const std::vector<FrameLine>& lines) {
  std::string text = "\033[H";
  for (const FrameLine& line : lines) {
    const std::string_view begin = styled_ ? begin_of(line.style) : "";
    text += begin;
    text += line.text;
    text += begin.empty() ? "\033[K\r\n" : "\033[0m\033[K\r\n";
  }
  text += "\033[J";
  gradring::write_all(output_, text);
}

}  // namespace gradring::train
