// SPDX-License-Identifier: Apache-2.0
#include "train/report/named_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "train/report/line_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const fs::path& path, int error) { throw_write_error(path, error, "file"); }

/// Creates a temporary file beside `path`; never one that exists, which may be the user's.
UniqueFd create_beside(const fs::path& path, fs::path& temporary) {
  constexpr int kMostTries = 100;
  for (int i = 1;; ++i) {
    temporary = temporary_of(path);
    if (i > 1) temporary += std::to_string(i);
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd) return fd;
    if (errno != EEXIST || i == kMostTries) fail_to_write(path, errno);
  }
}

}  // namespace

NamedFile::NamedFile(const fs::path& path) : path_(path) {
  std::error_code ignored;
  const std::string name = path.string();
  const bool is_link = fs::is_symlink(path, ignored);
  const bool is_descriptor = is_link && (name.starts_with("/dev/") || name.starts_with("/proc/"));  // /dev/stdout
  const fs::file_status target = fs::status(path, ignored);
  if (is_descriptor || (fs::exists(target) && !fs::is_regular_file(target) && !fs::is_directory(target))) {
    fd_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!fd_) fail_to_write(path, errno);
    return;
  }
  if (is_link) path_ = fs::weakly_canonical(path);
  fd_ = create_beside(path_, temporary_);
  struct stat replaced {};
  constexpr mode_t kPermissions = 0777;
  if (::stat(path_.c_str(), &replaced) == 0) ::fchmod(fd_.get(), replaced.st_mode & kPermissions);  // or as a new file
}

NamedFile::~NamedFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NamedFile::write(std::string_view part) {
  const NoSigpipe none;
  if (const int error = write_all(fd_.get(), part)) fail_to_write(path_, error);
}

void NamedFile::finish() {
  if (temporary_.empty()) return;
  if (::fsync(fd_.get()) != 0) fail_to_write(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(path_, errno);
  temporary_.clear();
}

void write_named_file(const fs::path& path, std::string_view text) {
  NamedFile file(path);
  file.write(text);
  file.finish();
}

}  // namespace gradring::train
