// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/directory.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace gradring {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0666, kFolderMode = 0777;

bool is_same(const struct stat& a, const struct stat& b) { return a.st_ino == b.st_ino && a.st_dev == b.st_dev; }

/// A folder that may be written but not read can be used, but not locked or listed.
UniqueFd open_directory(const fs::path& path) {
  constexpr int kFlags = O_DIRECTORY | O_CLOEXEC;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | kFlags));
  return !fd && errno == EACCES ? UniqueFd(::open(path.c_str(), O_PATH | kFlags)) : std::move(fd);
}

}  // namespace

FileAt FileAt::parent() const {
  return {directory_, name_.has_parent_path() ? name_.parent_path() : ".", path_.parent_path()};
}

FileAt FileAt::with_suffix(std::string_view suffix) const {
  return {directory_, fs::path(name_) += suffix, fs::path(path_) += suffix};
}

Directory::Directory(const fs::path& path)
    : path_(path.has_filename() ? path : path.parent_path()), fd_(open_directory(path)) {}

FileAt Directory::at(const fs::path& file) const {
  if (!fd_) return file;
  const auto [root, rest] = std::mismatch(path_.begin(), path_.end(), file.begin(), file.end());
  if (root != path_.end()) return file;
  fs::path name;
  for (auto part = rest; part != file.end(); ++part) name /= *part;
  return {fd_.get(), name.empty() ? "." : name, file};
}

bool Directory::is_removed() const {
  struct stat facts {};
  return ::fstat(fd_.get(), &facts) != 0 ? errno == ESTALE : facts.st_nlink == 0;
}

fs::path Directory::current_path() const {
  struct stat opened {
  }, named{};
  if (is_removed() || ::fstat(fd_.get(), &opened) != 0) return {};
  if (::stat(path_.c_str(), &named) == 0 && is_same(opened, named)) return path_;
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd_.get());
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  if (length <= 0) return {};
  fs::path path = std::string(target.data(), static_cast<std::size_t>(length));
  return ::stat(path.c_str(), &named) == 0 && is_same(opened, named) ? path : fs::path();
}

UniqueFd open_file(const FileAt& file, int flags) {
  return UniqueFd(::openat(file.directory(), file.name(), flags | O_CLOEXEC, kFileMode));
}

int make_folder(const FileAt& folder) {
  return ::mkdirat(folder.directory(), folder.name(), kFolderMode) == 0 ? 0 : errno;
}

bool is_at(const FileAt& file, const UniqueFd& opened) {
  struct stat facts {
  }, named{};
  return ::fstat(opened.get(), &facts) == 0 &&
         ::fstatat(file.directory(), file.name(), &named, AT_SYMLINK_NOFOLLOW) == 0 && is_same(facts, named);
}

std::vector<std::string> names_in(const FileAt& folder, int& error) {
  std::vector<std::string> names;
  UniqueFd fd = open_file(folder, O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd ? ::fdopendir(fd.get()) : nullptr, ::closedir);
  error = stream ? 0 : errno;
  if (!stream) return names;
  fd.release();  // closedir closes it
  for (errno = 0; const dirent* const entry = ::readdir(stream.get()); errno = 0)
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  error = errno;
  return names;
}

}  // namespace gradring
