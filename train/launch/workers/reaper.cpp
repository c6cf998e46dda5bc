// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/reaper.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/process_limit.h"
#include "train/launch/workers/signals.h"

namespace gradring::train {
namespace {

constexpr auto kReapTimeout = std::chrono::seconds(20);  // until killed workers have ended on a busy machine
constexpr auto kBetweenAttempts = std::chrono::milliseconds(20);

/// A message of the launcher: a group to watch, minus a group to forget, or the path of its folder (longer than a
/// number) with the descriptor that holds its lock.
struct Message {
  char text[PATH_MAX];
  alignas(cmsghdr) char descriptor[CMSG_SPACE(sizeof(int))];
  iovec bytes = {text, sizeof text};
  msghdr header() {
    return {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = descriptor, .msg_controllen = sizeof descriptor};
  }
};

/// Retries while dying workers add files, until the folder is removed or something else has its name.
void remove_folder(const std::filesystem::path& folder) {
  for (const auto deadline = Deadline::after(kReapTimeout); !deadline.passed();
       std::this_thread::sleep_for(kBetweenAttempts)) {
    const std::error_code error = remove_run_folder(folder);
    if (!error || error == std::errc::not_a_directory || error == std::errc::too_many_symbolic_link_levels ||
        error == std::errc::operation_not_permitted)
      return;
  }
}

/// The folder of a launcher killed before remove_on_death(). It is locked until all descriptors of the launcher are
/// closed.
void remove_unknown_folder(pid_t launcher) {
  for (const auto deadline = Deadline::after(kReapTimeout); ::getppid() == launcher && !deadline.passed();)
    std::this_thread::sleep_for(kBetweenAttempts);
  RunFolder::remove_stale(temporary_folder());
}

/// Closes every file but `stream`, and returns its new number. The reaper may outlive the launcher by half a minute,
/// and must not keep a port in use or the reader of a pipe waiting.
int close_inherited_files(int stream) {
  constexpr int kKept = STDERR_FILENO + 1;
  if (::dup2(stream, kKept) < 0) ::_exit(1);
  const int null = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < kKept; ++standard) ::dup2(null, standard);
  ::closefrom(kKept + 1);
  return kKept;
}

/// The process of the reaper. The stream ends when the launcher does.
[[noreturn]] void run_reaper(int stream, pid_t launcher) {
  ::setsid();
  stream = close_inherited_files(stream);
  ::prctl(PR_SET_NAME, "gradring-reaper");
  sigset_t every;
  ::sigfillset(&every);
  ::sigprocmask(SIG_SETMASK, &every, nullptr);
  if (::chdir("/") != 0) ::_exit(1);

  std::set<pid_t> groups;
  std::filesystem::path folder;
  while (true) {
    Message message;
    msghdr header = message.header();
    const ssize_t size = ::recvmsg(stream, &header, MSG_CMSG_CLOEXEC);  // keeps the lock until exit
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    pid_t group = 0;
    if (size == sizeof(group)) {
      std::memcpy(&group, message.text, sizeof(group));
      group > 0 ? void(groups.insert(group)) : void(groups.erase(-group));
    } else {
      folder = std::string(message.text, static_cast<std::size_t>(size));
    }
  }
  for (const pid_t group : groups) signal_group(group, SIGKILL);
  folder.empty() ? remove_unknown_folder(launcher) : remove_folder(folder);
  RunLink::remove_stale(PrivateFolder());
  ::_exit(0);
}

}  // namespace

Reaper::Reaper() {
  int ends[2];
  const bool connected = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
  if (!connected)
    throw DeviceError(std::string("cannot connect to the launcher's reaper process: ") + std::strerror(errno));
  const UniqueFd reaper_end(ends[0]);
  launcher_end_ = UniqueFd(ends[1]);
  const pid_t launcher = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw DeviceError("cannot start the launcher's reaper process: " + reason_of_failed_fork(errno));
  if (pid_ == 0) {
    launcher_end_.reset();
    run_reaper(reaper_end.get(), launcher);
  }
}

Reaper::~Reaper() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Reaper::remove_on_death(const RunFolder& folder) {
  const std::string path = folder.path();
  Message message;
  path.copy(message.text, message.bytes.iov_len = path.size());
  msghdr header = message.header();
  cmsghdr* lock = CMSG_FIRSTHDR(&header);
  *lock = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  const int fd = folder.lock();
  std::memcpy(CMSG_DATA(lock), &fd, sizeof(fd));
  // If the reaper was killed, the run continues without one.
  const bool sent = ::sendmsg(launcher_end_.get(), &header, MSG_NOSIGNAL) >= 0 || errno == EPIPE || errno == ECONNRESET;
  if (!sent)
    throw DeviceError(std::string("cannot send the run folder to the launcher's reaper process: ") +
                      std::strerror(errno));
}

void Reaper::note_end(pid_t pid) noexcept {
  if (pid == pid_) pid_ = -1;
}

void Reaper::send(pid_t group) noexcept {
  // If the reaper was killed, the run continues without one.
  ::send(launcher_end_.get(), &group, sizeof(group), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gradring::train
