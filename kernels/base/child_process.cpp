// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/process_limit.h"

namespace gradring {
namespace {

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::map<std::string, std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t sign = std::min(text.find('='), text.size());
    merged[text.substr(0, sign)] = text.substr(std::min(sign + 1, text.size()));
  }
  for (const auto& [name, value] : variables) merged[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : merged) environment.push_back(name + "=" + value);
  return environment;
}

/// The array of C strings, ended by nullptr, that exec takes. Valid as long as `texts`.
std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The child between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* words, char* const* environment, int socket, const ChildCommand& command,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before prctl
  ::dup2(socket, STDIN_FILENO);
  ::dup2(socket, STDOUT_FILENO);
  int errors = command.error_fd;
  if (errors < 0 && !command.keep_stderr) errors = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  ::execvpe(words[0], words, environment);
  ::_exit(127);
}

DeviceError failed(const std::string& what) {
  return DeviceError(what + ": " + std::generic_category().message(errno));
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw failed("cannot make a pair of sockets");
  socket_ = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  const std::vector<std::string> environment = environment_with(command.variables);
  const std::vector<char*> words = c_strings(command.words);
  const std::vector<char*> variables = c_strings(environment);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw DeviceError("cannot start " + command.words.front() + ": " + reason_of_failed_fork(errno));
  if (pid_ == 0) become(words.data(), variables.data(), theirs.get(), command, parent);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

bool ChildProcess::running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

bool ChildProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status == 0;
}

bool ChildProcess::write_line(std::string_view line) {
  std::string rest = std::string(line) + "\n";
  while (!rest.empty()) {
    const ssize_t count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return false;
    rest.erase(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return true;
}

std::string ChildProcess::read_line(Deadline deadline) {
  for (;;) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    char buffer[4096];
    const std::size_t count = read_socket(buffer, deadline);
    if (count == 0) throw DeviceError("the child process ended without an answer");
    unread_.append(buffer, count);
  }
}

std::size_t ChildProcess::read(std::span<char> out, Deadline deadline) {
  if (unread_.empty()) return read_socket(out, deadline);
  const std::size_t count = unread_.copy(out.data(), out.size());
  unread_.erase(0, count);
  return count;
}

std::size_t ChildProcess::read_socket(std::span<char> out, Deadline deadline) {
  for (;;) {
    pollfd readable{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&readable, 1, poll_timeout(deadline));
    if (ready == 0 && deadline.passed()) throw DeviceError("the child process did not answer before the deadline");
    const ssize_t count = ready > 0 ? ::read(socket_.get(), out.data(), out.size()) : -1;
    if (count >= 0) return static_cast<std::size_t>(count);
    if (ready > 0 && errno != EINTR) return 0;
  }
}

}  // namespace gradring
