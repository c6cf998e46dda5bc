// SPDX-License-Identifier: Apache-2.0
#include "tests/support/file_faults/plan.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace gradring::tests {
namespace {

class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = before_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int before_ = errno;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string name_of_process() {
  const std::string rank = variable("RANK");
  if (rank.empty()) return "launcher";
  const std::string restarts = variable("TORCHELASTIC_RESTART_COUNT");
  return "rank" + rank + (restarts.empty() || restarts == "0" ? "" : "#" + restarts);
}

/// Without what mkdtemp and mkostemp draw, and without what the kernel says of an open file that was removed.
std::string name_of(std::string_view place) {
  constexpr std::string_view kRemoved = " (deleted)";
  if (place.ends_with(kRemoved)) place.remove_suffix(kRemoved.size());
  std::string path(place);
  constexpr std::size_t kDrawn = 6;
  for (const std::string_view stem : {"gradring-run-", "draft-"}) {
    const std::size_t at = path.find(stem);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stem.size() + kDrawn;
    if (end == path.size() || (end < path.size() && path[end] == '/')) path.replace(at + stem.size(), kDrawn, "*");
  }
  return path;
}

/// By system calls of its own: none of them is counted.
class Plan {
 public:
  Plan()
      : folder_(variable("GRADRING_FILE_FAULTS_BELOW")),
        record_(variable("GRADRING_FILE_FAULTS_RECORD")),
        process_(name_of_process()),
        maker_(::getpid()) {
    const std::string text = variable("GRADRING_FILE_FAULT");
    const std::size_t space = text.rfind(' ');
    if (space == std::string::npos) return;
    operation_ = text.substr(0, space);
    fault_ = fault_named(text.substr(space + 1));
    fills_disk_ = text.substr(space + 1) == "full";
  }

  bool covers(std::string_view path) const {
    return !folder_.empty() && path.size() > folder_.size() && path.starts_with(folder_) && path[folder_.size()] == '/';
  }

  FileFault next(std::string_view operation, std::string_view path) {
    const std::string place = name_of(path.substr(folder_.size() + 1));
    std::string line = std::string(operation) + " " + place;
    const std::lock_guard held(mutex_);
    line = (::getpid() == maker_ ? process_ : "child") + " " + line + " " + std::to_string(++counts_[line]);
    if (line == operation_) write_line(line);
    static const std::set<std::string_view> needs_space = {"create", "write",   "pwrite",  "writev", "mkdir",
                                                           "link",   "mkdtemp", "mkstemp", "symlink"};
    if (is_full_ && needs_space.contains(operation)) return {FileFault::Kind::error, ENOSPC};
    if (operation_.empty()) return {.record = line};
    if (line != operation_) return {};
    is_full_ = fills_disk_;
    return fault_;
  }

  void write_line(const std::string& line) const {
    if (record_.empty()) return;
    const std::string text = line + "\n";
    const auto fd = ::syscall(SYS_openat, AT_FDCWD, record_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::syscall(SYS_write, fd, text.data(), text.size());
    ::syscall(SYS_close, fd);
  }

 private:
  static FileFault fault_named(std::string_view name) {
    using Kind = FileFault::Kind;
    static const std::map<std::string_view, FileFault> faults = {
        {"kill-before", {Kind::kill_before}}, {"kill-after", {Kind::kill_after}}, {"half", {Kind::half}},
        {"EIO", {Kind::error, EIO}},          {"ENOSPC", {Kind::error, ENOSPC}},  {"full", {Kind::error, ENOSPC}},
        {"EINTR", {Kind::error, EINTR}},      {"EINVAL", {Kind::error, EINVAL}},  {"command", {Kind::command}},
    };
    const auto found = faults.find(name);
    if (found == faults.end()) std::abort();  // a fault that is not known must not pass for one that did no harm
    return found->second;
  }

  std::string folder_;
  std::string record_;
  std::string process_;
  pid_t maker_;
  std::string operation_;
  FileFault fault_;
  bool fills_disk_ = false;
  bool is_full_ = false;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

/// Never destroyed: files are closed after everything else.
Plan& plan() {
  static Plan& made = *new Plan;
  return made;
}

/// What a link in /proc/self leads to, in `buffer`.
std::string_view linked(const std::string& link, std::array<char, PATH_MAX>& buffer) {
  const auto length = ::syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(length < 0 ? 0 : length)};
}

}  // namespace

FileFault next_fault(std::string_view operation, std::string_view path) noexcept {
  const KeptErrno kept;
  return plan().covers(path) ? plan().next(operation, path) : FileFault();
}

FileFault next_fault_at(std::string_view operation, int at, const char* path) noexcept {
  const KeptErrno kept;
  if (path == nullptr) return {};
  std::filesystem::path whole = path;
  if (whole.is_relative()) {
    std::array<char, PATH_MAX> buffer;
    whole = linked(at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(at), buffer) / whole;
  }
  std::string text = whole.lexically_normal().string();
  if (text.ends_with('/')) text.pop_back();
  return next_fault(operation, text);
}

FileFault next_fault_of(std::string_view operation, int fd) noexcept {
  const KeptErrno kept;
  std::array<char, PATH_MAX> buffer;
  return next_fault(operation, linked("/proc/self/fd/" + std::to_string(fd), buffer));
}

void run_command() noexcept {
  const KeptErrno kept;
  std::string command = variable("GRADRING_FILE_FAULT_COMMAND");
  std::string shell = "/bin/sh", option = "-c", no_preload = "LD_PRELOAD=";
  std::vector<char*> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with(no_preload)) environment.push_back(*entry);
  environment.push_back(nullptr);
  char* const words[] = {shell.data(), option.data(), command.data(), nullptr};
  pid_t child = 0;
  int status = 1;
  if (::posix_spawn(&child, shell.c_str(), nullptr, nullptr, words, environment.data()) != 0) std::abort();
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) std::abort();  // a fault that did not take place
}

void record_end(const FileFault& fault, std::string_view result) noexcept {
  const KeptErrno kept;
  if (!fault.record.empty()) plan().write_line(fault.record + " " + std::string(result));
}

}  // namespace gradring::tests
