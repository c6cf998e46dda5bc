// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/named_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "kernels/base/printable.h"
#include "train/records/metrics/line_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const fs::path& path, int error) { throw_write_error(path, error, "file"); }

mode_t kind_of(const FileAt& file, int flags) {
  struct stat facts {};
  return ::fstatat(file.directory(), file.name(), &facts, flags) == 0 ? facts.st_mode & S_IFMT : 0;
}

/// The file to which a link leads.
fs::path followed(const FileAt& link) {
  const std::string folder = "/proc/self/fd/" + std::to_string(link.directory());
  return fs::weakly_canonical(link.directory() == AT_FDCWD ? link.path() : fs::path(folder) / link.name());
}

}  // namespace

NamedFile::NamedFile(const FileAt& file) : path_(file.path()) {
  const std::string name = path_.string();
  const bool is_link = kind_of(file, AT_SYMLINK_NOFOLLOW) == S_IFLNK;
  const bool is_descriptor = is_link && (name.starts_with("/dev/") || name.starts_with("/proc/"));  // /dev/stdout
  const mode_t kind = kind_of(file, 0);
  if (is_descriptor || (kind != 0 && kind != S_IFREG && kind != S_IFDIR)) {
    fd_ = open_file(file, O_WRONLY | O_APPEND);
    if (!fd_) fail_to_write(path_, errno);
    return;
  }
  if (is_link) path_ = followed(file);
  folder_ = open_file(is_link ? FileAt(path_).parent() : file.parent(), O_PATH | O_DIRECTORY);
  if (!folder_) fail_to_write(path_, errno);
  fd_ = create_beside();
  struct stat replaced {};
  constexpr mode_t kPermissions = 0777;
  if (::fstatat(folder_.get(), path_.filename().c_str(), &replaced, 0) == 0)  // otherwise as a new file
    ::fchmod(fd_.get(), replaced.st_mode & kPermissions);
}

/// Creates a temporary file beside it; never one that exists, which may be the user's.
UniqueFd NamedFile::create_beside() {
  constexpr int kMostTries = 100;
  for (int i = 1;; ++i) {
    temporary_ = temporary_of(path_.filename());
    if (i > 1) temporary_ += std::to_string(i);
    UniqueFd fd = open_file(in_folder(temporary_), O_WRONLY | O_CREAT | O_EXCL);
    if (fd) return fd;
    if (errno == EEXIST && i < kMostTries) continue;
    temporary_.clear();
    fail_to_write(path_, errno);
  }
}

NamedFile::~NamedFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

void NamedFile::write(std::string_view part) {
  const NoSigpipe none;
  std::string escaped;  // for /dev/stdout, /dev/tty
  if (temporary_.empty() && ::isatty(fd_.get()) != 0) part = escaped = printable(part, "\n\t");
  if (const int error = write_all(fd_.get(), part)) fail_to_write(path_, error);
}

void NamedFile::finish() {
  if (temporary_.empty()) return;
  if (::fsync(fd_.get()) != 0) fail_to_write(path_, errno);
  const std::string name = path_.filename();
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name.c_str()) != 0) fail_to_write(path_, errno);
  temporary_.clear();
}

void write_named_file(const FileAt& file, std::string_view text) {
  NamedFile named(file);
  named.write(text);
  named.finish();
}

}  // namespace gradring::train
