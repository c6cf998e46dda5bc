// SPDX-License-Identifier: Apache-2.0
#include "train/launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/runtime/error.h"
#include "kernels/runtime/is_at.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "gradring-run-", kRandom = "XXXXXX";
constexpr const char* kMarker = "made-by-gradring";
constexpr std::size_t kLongestParent = 40;  // a socket's path has 107 characters; our part takes about 30

/// The folder itself, not what a link that somebody else put there leads to.
UniqueFd open_folder(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_ours(const UniqueFd& folder) {
  struct stat facts {};
  return ::fstat(folder.get(), &facts) == 0 && facts.st_uid == ::geteuid();
}

/// As mkdtemp names them.
bool has_our_name(const fs::path& path) {
  const std::string name = path.filename();
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kRandom.size() &&
         std::ranges::all_of(name.substr(kPrefix.size()),
                             [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

bool has_marker(const UniqueFd& folder) {
  struct stat facts {};
  return ::fstatat(folder.get(), kMarker, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode);
}

/// Removes the folders of runs of this user that were killed together with their guards. Only what a RunFolder made: a user's
/// own folder may have such a name.
void remove_stale(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, fs::directory_options::skip_permission_denied, ignored)) {
    if (!has_our_name(entry.path())) continue;
    const UniqueFd folder = open_folder(entry.path());
    if (!folder || !is_ours(folder) || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (has_marker(folder))
      fs::remove_all(entry.path(), ignored);
    else
      ::rmdir(entry.path().c_str());  // its maker was killed before it wrote the marker: empty
  }
}

fs::path make_folder(const fs::path& parent) {
  std::string name = (parent / kPrefix).string() + std::string(kRandom);
  if (::mkdtemp(name.data()) == nullptr)
    throw DeviceError(
        fmt::format("cannot make a folder for this run under {}: {}; point TMPDIR at a folder that can be written",
                    parent.string(), std::strerror(errno)));
  return name;
}

[[noreturn]] void give_up(const fs::path& path, const std::string& reason) {
  std::error_code ignored;
  fs::remove(path, ignored);
  throw DeviceError(fmt::format("cannot use {}, the folder of this run: {}", path.string(), reason));
}

/// Opens and locks a new folder. Empty if another launcher, looking for stale ones, was there first: it removes the
/// folder. Where the file system knows no locks, nobody can do that.
///
/// Errors    DeviceError if the folder cannot be opened for good; it is removed.
UniqueFd lock_folder(const fs::path& path) {
  UniqueFd folder = open_folder(path);
  if (!folder && errno == ENOENT) return {};
  if (!folder) give_up(path, std::strerror(errno));
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return {};
  if (!is_at(path, folder)) return {};  // another launcher has taken it for a stale one
  if (!is_ours(folder)) give_up(path, "the file system gives it to another user; point TMPDIR at another one");
  return folder;
}

}  // namespace

fs::path RunFolder::default_parent() {
  const char* folder = std::getenv("TMPDIR");
  const bool fits = folder != nullptr && *folder == '/' && std::strlen(folder) <= kLongestParent;
  return fits ? folder : "/tmp";
}

bool RunFolder::is_held(const fs::path& path) {
  const UniqueFd folder = open_folder(path);
  return folder && is_ours(folder) && ::flock(folder.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

RunFolder::RunFolder(const fs::path& parent) {
  remove_stale(parent);
  do {
    path_ = make_folder(parent);
    lock_ = lock_folder(path_);
  } while (!lock_);
  const UniqueFd marker(::openat(lock_.get(), kMarker, O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR));
  if (!marker || ::mkdir(store().c_str(), S_IRWXU) != 0) {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    fs::remove(path_ / kMarker, ignored);
    give_up(path_, reason);
  }
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path RunFolder::error_file(int local_rank) const { return path_ / fmt::format("error_{}.json", local_rank); }

fs::path RunFolder::progress_file(int local_rank) const { return path_ / fmt::format("progress_{}", local_rank); }

void RunFolder::renew() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error))
    if (const std::string name = entry.path().filename(); name != kMarker && !name.starts_with("progress_"))
      fs::remove_all(entry.path(), error);
  if (::mkdir(store().c_str(), S_IRWXU) != 0)
    throw DeviceError(
        fmt::format("cannot use {} again, the folder of this run: {}", path_.string(), std::strerror(errno)));
}

}  // namespace gradring::train
