// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/reaper.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/control_groups.h"
#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/process_limit.h"
#include "train/launch/workers/signals.h"

namespace gradring::train {
namespace {

constexpr auto kReapTimeout = std::chrono::seconds(20);  // until killed workers have ended on a busy machine
constexpr const char* kReaperName = "gradring-reaper";
constexpr auto kBetweenAttempts = std::chrono::milliseconds(20);

std::string text_of_file(const std::filesystem::path& path) {
  constexpr std::size_t kMaxBytes = 8 << 20;
  return read_regular_file(path, kMaxBytes).value_or("");
}

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

/// Where the run's control group is or would be; empty if no mount shows the group of this process.
std::filesystem::path group_of(const std::filesystem::path& run_folder) {
  const std::vector<ControlGroup> groups = control_groups("");
  if (groups.empty() || groups.back().version != ControlGroup::Version::v2) return {};
  const std::string members = "\n" + text_of_file(groups.back().folder / "cgroup.procs");
  const bool is_own = members.find("\n" + std::to_string(::getpid()) + "\n") != std::string::npos;
  return is_own ? groups.back().folder / run_folder.filename() : std::filesystem::path();
}

/// The processes whose environment has `mark`, the children of `adopter` in other sessions, and descendants of these.
std::set<pid_t> find_processes(const std::string& mark, pid_t adopter) {
  struct Process {
    pid_t pid = 0, parent = 0;
  };
  std::vector<Process> others;
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string facts = text_of_file(entry.path() / "stat");  // PID (NAME) STATE PARENT GROUP SESSION ...
    const auto name_end = facts.rfind(')');
    if (name_end == std::string::npos || facts.find(kReaperName) < name_end) continue;
    std::istringstream fields(facts.substr(name_end + 1));
    Process process{.pid = std::stoi(facts)};
    char state = 0;
    pid_t group = 0, session = 0;
    fields >> state >> process.parent >> group >> session;
    if (state == 'Z' || state == 'X') continue;
    const bool is_adopted = adopter != 0 && process.parent == adopter && session != ::getsid(0);
    if (is_adopted || ('\0' + text_of_file(entry.path() / "environ")).find(mark) != std::string::npos)
      found.insert(process.pid);
    others.push_back(process);
  }
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (const Process& process : others)
      if (found.contains(process.parent)) found.insert(process.pid);
  }
  return found;
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
  ::prctl(PR_SET_NAME, kReaperName);
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
  if (!folder.empty()) kill_run_processes(folder, kReapTimeout, 0);
  if (!folder.empty()) remove_control_group(folder);
  folder.empty() ? remove_unknown_folder(launcher) : remove_folder(folder);
  RunLink::remove_stale(PrivateFolder());
  ::_exit(0);
}

}  // namespace

UniqueFd make_control_group(const std::filesystem::path& run_folder) {
  const std::filesystem::path group = group_of(run_folder);
  if (group.empty() || ::mkdir(group.c_str(), S_IRWXU) != 0) return {};
  return UniqueFd(::open((group / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
}

void kill_run_processes(const std::filesystem::path& run_folder, std::chrono::nanoseconds timeout,
                        pid_t adopter) noexcept try {
  if (const std::filesystem::path group = group_of(run_folder); !group.empty())
    std::ofstream(group / "cgroup.kill") << '1';
  const std::string mark = '\0' + ("GRADRING_STORE=" + (run_folder / "store").string()) + '\0';
  for (const auto deadline = Deadline::after(timeout); !deadline.passed(); sleep_for(kBetweenAttempts)) {
    const std::set<pid_t> left = find_processes(mark, adopter);
    if (left.empty()) break;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
  }
} catch (const std::exception&) {  // no memory, or no /proc
}

void remove_control_group(const std::filesystem::path& run_folder) noexcept try {
  ::rmdir(group_of(run_folder).c_str());
} catch (const std::exception&) {  // an empty group stays
}

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
