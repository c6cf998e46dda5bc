// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "kernels/runtime/is_at.h"
#include "train/config/usage_error.h"
#include "train/launch/host_name.h"
#include "train/launch/run_folder.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A process that has just locked the file writes its name next.
constexpr int kReadAttempts = 50;
/// A process in is_locked() holds the lock for a moment.
constexpr int kLockAttempts = 25;
constexpr std::chrono::milliseconds kRetryInterval(4);

[[noreturn]] void fail(const fs::path& file, int error) {
  const char* advice =
      error == ENOSPC || error == EDQUOT ? "free some space or choose another --run-dir" : "choose another --run-dir";
  throw EnvironmentError("cannot lock the run directory: " + file.string() + ": " +
                         std::generic_category().message(error) + "; " + advice);
}

std::string describe_this_process(const fs::path& launch_folder) {
  const std::string now = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
  const Json holder{
      {"pid", ::getpid()}, {"host", host_name()}, {"started", now}, {"launch_folder", launch_folder.string()}};
  return holder.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// What the file says; an empty object if it says nothing yet.
Json holder_in(const UniqueFd& file) {
  char text[4096];
  const ssize_t length = ::pread(file.get(), text, sizeof(text), 0);
  Json holder = Json::parse(text, text + std::max<ssize_t>(length, 0), nullptr, false);
  return holder.is_object() ? holder : Json::object();
}

Json holder_when_written(const UniqueFd& file) {
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    if (Json holder = holder_in(file); !holder.empty()) return holder;
    std::this_thread::sleep_for(kRetryInterval);
  }
  return Json::object();
}

/// A string of the file; empty if it has none of that name.
std::string string_in(const Json& holder, const char* name) {
  const auto found = holder.find(name);
  return found != holder.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string shown(const Json& holder, const char* name) {
  const auto found = holder.find(name);
  if (found == holder.end()) return "unknown";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Whether another run's launcher, which may start the ranks again, is still running.
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
    throw_in_use(run_dir, holder, ", under a launcher that may start it again");
}

/// Returns errno, or 0.
int write_whole(const UniqueFd& file, const std::string& text) {
  if (::ftruncate(file.get(), 0) != 0) return errno;
  const ssize_t written = ::pwrite(file.get(), text.data(), text.size(), 0);
  if (written < 0) return errno;
  return written == static_cast<ssize_t>(text.size()) ? 0 : ENOSPC;
}

bool is_taken(const UniqueFd& file) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(kRetryInterval);
  }
  return true;
}

/// Locks the directory itself, beside the file: a user may have removed the file of a run that goes on.
UniqueFd lock_directory(const fs::path& run_dir) {
  UniqueFd directory(::open(run_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory && ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UsageError(
        fmt::format("--run-dir {} is in use by another run, whose {} was removed; wait for its end, stop it, "
                    "or choose another --run-dir",
                    run_dir.string(), kRunLockFile));
  return directory;
}

}  // namespace

bool is_locked(const fs::path& run_dir) {
  const UniqueFd file(::open((run_dir / kRunLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool is_run_lock(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::error_code error;
  return file && fs::is_regular_file(fs::symlink_status(path, error)) &&
         (fs::is_empty(path, error) || holder_in(file).contains("pid"));
}

RunLock::RunLock(const fs::path& run_dir, const fs::path& launch_folder)
    : run_dir_(run_dir), stays_(!launch_folder.empty()) {
  while (!try_lock(launch_folder)) {
  }
}

/// Returns   false if the file was removed in the meantime.
bool RunLock::try_lock(const fs::path& launch_folder) {
  const fs::path path = run_dir_ / kRunLockFile;
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) fail(path, errno);
  // Before the lock is tried: that run's rank 0, which may just be starting, must not find it taken.
  check_launcher(run_dir_, holder_in(file), launch_folder);
  if (is_taken(file)) {
    const Json holder = holder_when_written(file);
    if (!is_at(path, file)) return false;
    throw_in_use(run_dir_, holder, "");
  }
  if (!is_at(path, file)) return false;                      // the run that held it has ended, and removed it
  check_launcher(run_dir_, holder_in(file), launch_folder);  // its rank 0 may have come and gone since
  file_ = std::move(file);
  try {
    directory_ = lock_directory(run_dir_);
  } catch (const UsageError&) {
    release();
    throw;
  }
  if (const int error = write_whole(file_, describe_this_process(launch_folder))) {
    release();
    fail(path, error);
  }
  return true;
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
  const fs::path path = run_dir_ / kRunLockFile;
  directory_.reset();  // first: the next process that locks the file must get the directory, too
  // While it is locked: another run's file is never removed.
  if (is_at(path, file_)) ::unlink(path.c_str());
  file_.reset();
}

}  // namespace gradring::train
