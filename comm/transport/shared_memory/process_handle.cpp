// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/shared_memory/process_handle.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>

#include <fstream>
#include <string>

namespace gradring::comm {
namespace {

/// The letter in /proc/PID/stat that says what a process does: it follows the name, which stands in parentheses.
char state_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '?' : line[name_end + 2];
}

}  // namespace

ProcessHandle::ProcessHandle(int pid) : pid_(pid), handle_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

bool ProcessHandle::gone() const {
  if (!handle_) return true;
  pollfd ended{.fd = handle_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) > 0;
}

bool ProcessHandle::stopped() const { return state_of(pid_) == 'T'; }

}  // namespace gradring::comm
