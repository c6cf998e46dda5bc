// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/shared_memory/process_handle.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

/// The state letter in /proc/PID/stat: it follows the process name, which is in parentheses.
char state_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '?' : line[name_end + 2];
}

/// pidfd_open is missing in an old kernel, or denied by a container's seccomp filter or by SELinux; then the pid is
/// watched.
bool pidfd_is_unavailable(int error) { return error == ENOSYS || error == EPERM || error == EACCES; }

bool pid_is_free(int pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace

ProcessHandle::ProcessHandle(int pid) : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  if (handle_) return;
  const int reason = errno;
  gone_at_open_ = reason == ESRCH;
  check<DeviceError>(gone_at_open_ || pidfd_is_unavailable(reason), [&] {
    return fmt::format("cannot watch process {}: {}", pid, std::generic_category().message(reason));
  });
}

bool ProcessHandle::gone() const {
  if (gone_at_open_) return true;
  if (!handle_) return pid_is_free(pid_) || state_of(pid_) == 'Z';
  pollfd ended{.fd = handle_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&ended, 1, 0) > 0;
}

bool ProcessHandle::stopped() const { return state_of(pid_) == 'T'; }

}  // namespace gradring::comm
