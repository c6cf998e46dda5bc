// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "kernels/base/file.h"
#include "kernels/base/host_name.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/file_advice.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A process writes its name right after it has locked the file.
constexpr int kReadAttempts = 50;
/// is_locked() in another process holds the lock for a moment.
constexpr int kLockAttempts = 25;
constexpr std::chrono::milliseconds kRetryInterval(4);
constexpr std::size_t kLongestText = 4096;

[[noreturn]] void fail(const fs::path& file, int error) {
  throw EnvironmentError("cannot lock the run directory: " + file.string() + ": " +
                         std::generic_category().message(error) + "; " + advice_on(error, "--run-dir"));
}

[[noreturn]] void fail_to_read(const fs::path& file, int error) {
  throw EnvironmentError("cannot read " + file.string() + ": " + std::generic_category().message(error) + "; " +
                         advice_on(error, "--run-dir"));
}

std::string describe_this_process(const fs::path& launch_folder) {
  const std::string now = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
  const Json holder{
      {"pid", ::getpid()}, {"host", host_name()}, {"started", now}, {"launch_folder", launch_folder.string()}};
  return holder.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The content of the file; an empty object if it is not written yet.
Json holder_in(std::string_view text) {
  Json holder = Json::parse(text, nullptr, false);
  return holder.is_object() ? holder : Json::object();
}

Json holder_in(const UniqueFd& file) {
  char text[kLongestText];
  const ssize_t length = ::pread(file.get(), text, sizeof(text), 0);
  return holder_in({text, static_cast<std::size_t>(std::max<ssize_t>(length, 0))});
}

Json holder_when_written(const UniqueFd& file) {
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    if (Json holder = holder_in(file); !holder.empty()) return holder;
    std::this_thread::sleep_for(kRetryInterval);
  }
  return Json::object();
}

/// A string member; empty if it is missing.
std::string string_in(const Json& holder, const char* name) {
  const auto found = holder.find(name);
  return found != holder.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string shown(const Json& holder, const char* name) {
  const auto found = holder.find(name);
  if (found == holder.end()) return "unknown";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Whether the launcher of another run, which may restart the ranks, is still running.
bool launcher_is_running(const Json& holder, const fs::path& own_launch_folder) {
  const std::string folder = string_in(holder, "launch_folder");
  return !folder.empty() && folder != own_launch_folder && string_in(holder, "host") == host_name() &&
         RunFolder::is_held(folder);
}

[[noreturn]] void throw_in_use(const fs::path& run_dir, const Json& holder, std::string_view note) {
  throw UsageError(
      fmt::format("--run-dir {} is in use by another run: process {} on host {}, started {}{}; wait for its end, stop "
                  "it, or choose another --run-dir",
                  run_dir.string(), shown(holder, "pid"), shown(holder, "host"), shown(holder, "started"), note));
}

void check_launcher(const fs::path& run_dir, const Json& holder, const fs::path& own_launch_folder) {
  if (launcher_is_running(holder, own_launch_folder))
    throw_in_use(run_dir, holder, ", under a launcher that may restart it");
}

/// Returns errno, or 0.
int replace_text(const UniqueFd& file, const std::string& text) {
  if (::ftruncate(file.get(), 0) != 0) return errno;
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return errno;
  return gradring::write_all(file.get(), text);
}

bool is_taken(const UniqueFd& file) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(kRetryInterval);
  }
  return true;
}

/// Locks the directory itself: a user may have removed the file of a running process.
void lock(const Directory& directory) {
  if (::flock(directory.fd().get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UsageError(
        fmt::format("--run-dir {} is in use by another run, whose {} was removed; wait for its end, stop it, "
                    "or choose another --run-dir",
                    directory.path().string(), kRunLockFile));
}

}  // namespace

bool is_locked(const fs::path& run_dir) {
  const UniqueFd file(::open((run_dir / kRunLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::optional<RunLockHolder> lock_holder(const fs::path& run_dir) {
  const UniqueFd file(::open((run_dir / kRunLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return std::nullopt;
  const int error = ::flock(file.get(), LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
  if (error == 0) ::flock(file.get(), LOCK_UN);
  const Json text = holder_in(file);
  const auto pid = text.find("pid");
  RunLockHolder holder{.host = string_in(text, "host"),
                       .pid = pid != text.end() && pid->is_number_integer() ? pid->get<std::int64_t>() : 0};
  const bool has_process = holder.pid > 0 && holder.host == host_name() &&
                           (::kill(static_cast<pid_t>(holder.pid), 0) == 0 || errno == EPERM);
  holder.is_alive = error == EWOULDBLOCK || (error != 0 && has_process) || launcher_is_running(text, {});
  return holder;
}

bool is_run_lock(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && (errno == ELOOP || errno == ENXIO)) return false;  // a link, a socket
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) fail_to_read(path, errno);
  if (!S_ISREG(facts.st_mode)) return false;
  char text[kLongestText];
  const ssize_t length = ::pread(file.get(), text, sizeof(text), 0);
  if (length < 0) fail_to_read(path, errno);
  return length == 0 || holder_in({text, static_cast<std::size_t>(length)}).contains("pid");
}

RunLock::RunLock(const fs::path& run_dir, const fs::path& launch_folder)
    : run_dir_(run_dir), stays_(!launch_folder.empty()) {
  while (!try_lock(launch_folder)) {
  }
}

FileAt RunLock::file() const { return directory_.at(directory_.path() / kRunLockFile); }

/// Returns false if the file was removed or the directory moved in the meantime.
bool RunLock::try_lock(const fs::path& launch_folder) {
  directory_ = Directory(run_dir_);
  if (!directory_) fail(run_dir_ / kRunLockFile, errno);
  const FileAt path = this->file();
  UniqueFd file = open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!file) fail(path.path(), errno);
  const auto is_named = [&] { return is_at(path, file) && directory_.current_path() == directory_.path(); };
  // Before locking: rank 0 of that run, which may just be starting, must not find the lock taken.
  check_launcher(run_dir_, holder_in(file), launch_folder);
  if (is_taken(file)) {
    const Json holder = holder_when_written(file);
    if (!is_named()) return false;
    throw_in_use(run_dir_, holder, "");
  }
  if (!is_named()) return false;                             // the run that held it has ended and removed it
  check_launcher(run_dir_, holder_in(file), launch_folder);  // its rank 0 may have started and ended since
  file_ = std::move(file);
  try {
    lock(directory_);
  } catch (const UsageError&) {
    release();
    throw;
  }
  if (const int error = replace_text(file_, describe_this_process(launch_folder))) {
    release();
    fail(path.path(), error);
  }
  return true;
}

void RunLock::check_held() const {
  const std::string name = directory_.path().string();
  if (directory_.is_removed())
    throw LostDirectoryError(
        fmt::format("the run directory {} was removed: nothing more of this run can be saved; start it again", name));
  const UniqueFd found = open_file(file(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!found || is_at(file(), file_)) return;
  const Json holder = holder_in(found);
  throw LostDirectoryError(
      fmt::format("the run directory {} belongs to another run now, of process {} on host {}: nothing more of this run "
                  "can be saved; start it again in another --run-dir",
                  name, shown(holder, "pid"), shown(holder, "host")));
}

RunLock::~RunLock() {
  if (!stays_) release();
}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(run_dir_, other.run_dir_);
  std::swap(file_, other.file_);
  std::swap(directory_, other.directory_);
  std::swap(stays_, other.stays_);
  return *this;
}

void RunLock::release() noexcept {
  if (!file_) return;
  ::flock(directory_.fd().get(), LOCK_UN);  // first: the next process that locks the file must also get the directory
  // While it is locked: this must not remove the file of another run.
  if (const FileAt path = file(); is_at(path, file_)) ::unlinkat(path.directory(), path.name(), 0);
  file_.reset();
}

}  // namespace gradring::train
