// SPDX-License-Identifier: Apache-2.0
#include "train/launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "gradring-run-";
constexpr std::size_t kLongestParent = 40;  // a socket's path has 107 characters; our part takes about 30

/// The folder itself, if it is one of ours and not a link that somebody else put there.
UniqueFd open_folder(const fs::path& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  if (folder && (::fstat(folder.get(), &facts) != 0 || facts.st_uid != ::geteuid())) folder.reset();
  return folder;
}

/// Removes the folders of runs of this user that were killed together with their guards.
void remove_stale(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, fs::directory_options::skip_permission_denied, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    const UniqueFd folder = open_folder(entry.path());
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
  }
}

/// Locks a new folder; false if another launcher took it for a stale one before the lock was there. Where the file system
/// knows no locks, nobody can do that.
bool lock_folder(const fs::path& path, int folder) {
  if (folder < 0) return false;
  ::flock(folder, LOCK_EX);
  struct stat opened {
  }, named{};
  return ::fstat(folder, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino;
}

}  // namespace

fs::path RunFolder::default_parent() {
  const char* folder = std::getenv("TMPDIR");
  const bool fits = folder != nullptr && *folder == '/' && std::strlen(folder) <= kLongestParent;
  return fits ? folder : "/tmp";
}

RunFolder::RunFolder(const fs::path& parent) {
  remove_stale(parent);
  do {
    std::string name = (parent / kPrefix).string() + "XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      throw DeviceError(
          fmt::format("cannot make a folder for this run under {}: {}; point TMPDIR at a folder that can be written",
                      parent.string(), std::strerror(errno)));
    path_ = name;
    lock_ = open_folder(path_);
  } while (!lock_folder(path_, lock_.get()));
  if (::mkdir(store().c_str(), S_IRWXU) != 0) {
    const int reason = errno;
    fs::remove(path_);
    throw DeviceError(fmt::format("cannot make {}: {}", store().string(), std::strerror(reason)));
  }
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path RunFolder::error_file(int rank) const { return path_ / fmt::format("error_{}.json", rank); }

}  // namespace gradring::train
