// SPDX-License-Identifier: Apache-2.0
#include "train/report/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "kernels/runtime/unique_fd.h"
#include "kernels/runtime/write_all.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// What a user may choose in place of a file that cannot be written.
constexpr const char* kRunDir = "--run-dir";
constexpr const char* kFile = "file";

[[noreturn]] void fail(const fs::path& path, int error, const char* other) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw EnvironmentError("cannot write " + path.string() + ": " + std::generic_category().message(error) + "; " +
                         (is_full ? "free some space or " : "") + "choose another " + other);
}

void write_aside(const fs::path& path, std::string_view text, const char* other) {
  const fs::path aside = draft_of(path);
  ::unlink(aside.c_str());  // one that a killed process left; never what a link leads to
  const int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) fail(path, errno, other);
  int error = write_all(fd, text);
  if (!error && ::fsync(fd) != 0) error = errno;
  if (::close(fd) != 0 && !error) error = errno;
  if (!error && ::rename(aside.c_str(), path.c_str()) != 0) error = errno;
  if (!error) return;
  ::unlink(aside.c_str());
  fail(path, error, other);
}

}  // namespace

LineFile::LineFile(const std::filesystem::path& path)
    : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail(path_, errno, kRunDir);
  size_ = ::lseek(fd_, 0, SEEK_END);
}

LineFile::~LineFile() { ::close(fd_); }

void LineFile::append(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  if (const int error = write_all(fd_, text)) {
    if (::ftruncate(fd_, size_) != 0) fail(path_, errno, kRunDir);
    fail(path_, error, kRunDir);
  }
  size_ += static_cast<long long>(text.size());
}

std::filesystem::path draft_of(const std::filesystem::path& path) {
  std::filesystem::path draft = path;
  draft += ".tmp";
  return draft;
}

void write_file_whole(const fs::path& path, std::string_view text) { write_aside(path, text, kRunDir); }

void write_named_file(const fs::path& path, std::string_view text) {
  std::error_code ignored;
  const std::string name = path.string();
  const bool is_link = fs::is_symlink(path, ignored);
  const bool is_descriptor = is_link && (name.starts_with("/dev/") || name.starts_with("/proc/"));  // /dev/stdout
  const fs::file_status target = fs::status(path, ignored);
  if (!is_descriptor && (!fs::exists(target) || fs::is_regular_file(target) || fs::is_directory(target)))
    return write_aside(is_link ? fs::weakly_canonical(path) : path, text, kFile);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd) fail(path, errno, kFile);
  const NoSigpipe none;
  if (const int error = write_all(fd.get(), text)) fail(path, error, kFile);
}

}  // namespace gradring::train
