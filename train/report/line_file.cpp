// SPDX-License-Identifier: Apache-2.0
#include "train/report/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "kernels/runtime/write_all.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw EnvironmentError("cannot write " + path.string() + ": " + std::generic_category().message(error) +
                         "; free some space or choose another --run-dir");
}

}  // namespace

LineFile::LineFile(const std::filesystem::path& path)
    : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail(path_, errno);
  size_ = ::lseek(fd_, 0, SEEK_END);
}

LineFile::~LineFile() { ::close(fd_); }

void LineFile::append(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  if (const int error = write_all(fd_, text)) {
    if (::ftruncate(fd_, size_) != 0) fail(path_, errno);
    fail(path_, error);
  }
  size_ += static_cast<long long>(text.size());
}

std::filesystem::path draft_of(const std::filesystem::path& path) {
  std::filesystem::path draft = path;
  draft += ".tmp";
  return draft;
}

void write_file_whole(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path aside = draft_of(path);
  const int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail(path, errno);
  int error = write_all(fd, text);
  if (!error && ::fsync(fd) != 0) error = errno;
  if (::close(fd) != 0 && !error) error = errno;
  if (!error && ::rename(aside.c_str(), path.c_str()) != 0) error = errno;
  if (!error) return;
  ::unlink(aside.c_str());
  fail(path, error);
}

}  // namespace gradring::train
