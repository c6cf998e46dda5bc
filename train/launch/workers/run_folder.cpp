// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "gradring-run-", kRandom = "XXXXXX", kLinkPrefix = "gradring-";
constexpr const char *kMarker = "made-by-gradring", *kToken = "token", *kRunDirectory = "run-directory";
/// The reaper of a killed launcher holds the folder until it has removed it.
constexpr auto kLinkTimeout = std::chrono::seconds(5);
constexpr PollPace kLinkPace = {
    .spins = 0, .first_nap = std::chrono::milliseconds(5), .longest_nap = std::chrono::milliseconds(50)};

bool is_ours(const UniqueFd& folder) {
  struct stat facts {};
  return ::fstat(folder.get(), &facts) == 0 && facts.st_uid == ::geteuid();
}

/// As mkdtemp names them.
bool has_our_name(const fs::path& path) {
  const std::string name = path.filename();
  return name.starts_with(kFolderPrefix) && name.size() == kFolderPrefix.size() + kRandom.size() &&
         std::ranges::all_of(name.substr(kFolderPrefix.size()),
                             [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

bool has_marker(const UniqueFd& folder) {
  struct stat facts {};
  return ::fstatat(folder.get(), kMarker, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode);
}

fs::path create_folder(const fs::path& parent) {
  std::string name = (parent / kFolderPrefix).string() + std::string(kRandom);
  if (::mkdtemp(name.data()) == nullptr)
    throw DeviceError(fmt::format("cannot create a run folder in {}: {}; set TMPDIR to a writable folder",
                                  parent.string(), std::strerror(errno)));
  return name;
}

[[noreturn]] void give_up(const fs::path& path, const std::string& reason) {
  std::error_code ignored;
  fs::remove(path, ignored);
  throw DeviceError(fmt::format("cannot use the run folder {}: {}", path.string(), reason));
}

/// Opens and locks a new folder. Empty if another launcher has taken it for a stale one: that launcher removes it. On
/// file systems without locks nobody can do that.
///
/// Errors    DeviceError if the folder cannot be opened at all; it is removed.
UniqueFd lock_folder(const fs::path& path) {
  UniqueFd folder = open_folder(path);
  if (!folder && errno == ENOENT) return {};
  if (!folder) give_up(path, std::strerror(errno));
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return {};
  if (!is_at(path, folder)) return {};
  if (!is_ours(folder)) give_up(path, "the file system assigns it to another user; set TMPDIR to another folder");
  return folder;
}

/// The file name of a link, without its key.
std::string stem_of(const RunName& name) {
  const std::string run = fmt::format("{}:{}:{}", name.run_id, name.port, name.attempt);
  return fmt::format("{}{}-{}-{:016x}", kLinkPrefix, name.kind, ::geteuid(), std::hash<std::string>()(run));
}

std::string file_name(const RunName& name) { return stem_of(name) + (name.key.empty() ? "" : "-" + name.key); }

/// The target of a link; empty if it is missing.
fs::path read_link(const UniqueFd& folder, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(folder.get(), name.c_str(), target, sizeof target);
  return std::string(target, length > 0 ? static_cast<std::size_t>(length) : 0);
}

/// Removes links to run folders that no process holds, but not a user's own links with similar names. The caller holds
/// the lock.
void remove_stale_links(const UniqueFd& folder, const fs::path& path) {
  const std::string user = fmt::format("-{}-", ::geteuid());
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename();
    const fs::path target = read_link(folder, name);
    if (name.starts_with(kLinkPrefix) && name.find(user) != std::string::npos &&
        target.filename().string().starts_with(kFolderPrefix) && !RunFolder::is_held(target))
      ::unlinkat(folder.get(), name.c_str(), 0);
  }
}

}  // namespace

std::error_code remove_run_folder(const fs::path& path) {
  const UniqueFd folder = open_folder(path);  // fails on a link that replaced the folder
  if (!folder) return errno == ENOENT ? std::error_code() : std::error_code(errno, std::generic_category());
  if (!is_ours(folder)) return std::make_error_code(std::errc::operation_not_permitted);
  std::error_code error;
  fs::directory_iterator entry(path, error);
  while (!error && entry != fs::directory_iterator()) {
    if (entry->path().filename() != kMarker) fs::remove_all(entry->path(), error);
    if (!error) entry.increment(error);
  }
  if (!error) fs::remove_all(path, error);
  return error;
}

std::string describe_process(const std::string& run_dir) {
  return fmt::format("process {}{}{}", ::getpid(), run_dir.empty() ? "" : ", run directory ", run_dir);
}

std::string RunFolder::owner(const fs::path& path) try {
  return read_private_file(path / kMarker);
} catch (const Error&) {
  return "unknown process";
}

bool RunFolder::is_held(const fs::path& path) {
  const UniqueFd folder = open_folder(path);
  return folder && is_ours(folder) && ::flock(folder.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void RunFolder::remove_stale(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, fs::directory_options::skip_permission_denied, ignored)) {
    if (!has_our_name(entry.path())) continue;
    const UniqueFd folder = open_folder(entry.path());
    if (!folder || !is_ours(folder) || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (has_marker(folder))
      remove_run_folder(entry.path());
    else
      ::rmdir(entry.path().c_str());  // empty if its launcher was killed before it wrote the marker
  }
}

RunFolder::RunFolder(const fs::path& parent, const std::string& run_dir) {
  remove_stale(parent);
  do {
    path_ = create_folder(parent);
    lock_ = lock_folder(path_);
  } while (!lock_);
  const UniqueFd marker(::openat(lock_.get(), kMarker, O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR));
  const int error = marker ? write_all(marker.get(), describe_process(run_dir)) : errno;
  if (error != 0 || ::mkdir(store().c_str(), S_IRWXU) != 0) {
    const std::string reason = std::strerror(error != 0 ? error : errno);
    std::error_code ignored;
    fs::remove(path_ / kMarker, ignored);
    give_up(path_, reason);
  }
}

RunFolder::~RunFolder() { remove_run_folder(path_); }

fs::path RunFolder::error_file(int local_rank) const { return path_ / fmt::format("error_{}.json", local_rank); }

fs::path RunFolder::progress_file(int local_rank) const { return path_ / fmt::format("progress_{}", local_rank); }

fs::path RunFolder::token_file(const fs::path& path) { return path / kToken; }

fs::path RunFolder::run_directory_file(const fs::path& path) { return path / kRunDirectory; }

void RunFolder::renew() {
  const auto is_kept = [](const std::string& name) {
    return name == kMarker || name == kToken || name == kRunDirectory || name.starts_with("progress_");
  };
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error))
    if (!is_kept(entry.path().filename())) fs::remove_all(entry.path(), error);
  if (::mkdir(store().c_str(), S_IRWXU) != 0)
    throw DeviceError(fmt::format("cannot reuse the run folder {}: {}", path_.string(), std::strerror(errno)));
}

RunLink::RunLink(PrivateFolder links, const RunName& name, const RunFolder& folder)
    : links_(std::move(links)), name_(file_name(name)), target_(folder.path()) {
  const auto is_created = [&] {
    const UniqueFd locked = links_.lock();
    remove_stale_links(locked, links_.path());
    if (::symlinkat(target_.c_str(), locked.get(), name_.c_str()) == 0) return true;
    const int reason = errno;
    links_.remove_if_empty();
    if (reason == EEXIST) return false;
    throw DeviceError(
        fmt::format("cannot create the link {}: {}", (links_.path() / name_).string(), std::strerror(reason)));
  };
  if (!poll_until(is_created, Deadline::after(kLinkTimeout), kLinkPace))
    throw DeviceError(
        fmt::format("another run on this host ({}) uses the run id '{}' and the port {}: give this one another id "
                    "(--rdzv-id, TORCHELASTIC_RUN_ID) or port (--master-port, GRADRING_RENDEZVOUS_PORT)",
                    RunFolder::owner(read_link(links_.open(), name_)), name.run_id, name.port));
}

RunLink::~RunLink() {
  try {
    const UniqueFd locked = links_.lock();
    if (read_link(locked, name_) == target_) ::unlinkat(locked.get(), name_.c_str(), 0);
    links_.remove_if_empty();
  } catch (const std::exception&) {  // the next run removes the link
  }
}

void RunLink::remove_stale(const PrivateFolder& links) noexcept {
  try {
    if (!links.open()) return;
    const UniqueFd locked = links.lock();
    remove_stale_links(locked, links.path());
    links.remove_if_empty();
  } catch (const std::exception&) {
  }
}

std::optional<fs::path> RunLink::follow(const PrivateFolder& links, const RunName& name) {
  const UniqueFd folder = links.open();
  if (!folder) return std::nullopt;
  fs::path target = read_link(folder, file_name(name));
  if (target.empty() || !RunFolder::is_held(target)) return std::nullopt;
  return target;
}

std::vector<fs::path> RunLink::others(const PrivateFolder& links, const RunName& name) {
  std::vector<fs::path> found;
  const UniqueFd folder = links.open();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(links.path(), ignored)) {
    const std::string file = entry.path().filename();
    if (!folder || !file.starts_with(stem_of(name)) || file == file_name(name)) continue;
    if (fs::path target = read_link(folder, file); RunFolder::is_held(target)) found.push_back(std::move(target));
  }
  return found;
}

}  // namespace gradring::train
