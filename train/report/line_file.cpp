// SPDX-License-Identifier: Apache-2.0
#include "train/report/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "kernels/runtime/file.h"
#include "train/report/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// What the user can change if a file cannot be written.
constexpr const char* kRunDir = "--run-dir";

/// Of a PatientFile, in bytes.
constexpr std::size_t kMostWaitingBytes = 1 << 20;

[[noreturn]] void fail(const fs::path& path, int error) { throw_write_error(path, error, kRunDir); }

}  // namespace

void throw_write_error(const fs::path& path, int error, const char* other) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw EnvironmentError("cannot write " + path.string() + ": " + std::generic_category().message(error) + "; " +
                         (is_full ? "free some space or " : "") + "choose another " + other);
}

LineFile::LineFile(const std::filesystem::path& path)
    : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail(path_, errno);
  size_ = ::lseek(fd_, 0, SEEK_END);
}

LineFile::~LineFile() { ::close(fd_); }

void LineFile::append(std::string_view line) { append_bytes(std::string(line) + '\n'); }

void LineFile::append_bytes(std::string_view bytes) {
  if (const int error = write_all(fd_, bytes)) {
    if (::ftruncate(fd_, size_) != 0) fail(path_, errno);
    fail(path_, error);
  }
  size_ += static_cast<long long>(bytes.size());
}

void PatientFile::append(std::string_view record) {
  if (waiting_bytes_ + record.size() <= kMostWaitingBytes) {
    waiting_.emplace_back(record);
    waiting_bytes_ += record.size();
  } else {
    ++dropped_;
  }
  write_waiting();
}

void PatientFile::write_waiting() try {
  while (file_ && !waiting_.empty()) {
    file_->append_bytes(waiting_.front());
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
  }
  failure_.clear();
} catch (const EnvironmentError& error) {
  if (failure_.empty())
    print_to_stderr(
        fmt::format("gradring train: {}; training continues, and keeps what is missing in memory\n", error.what()));
  failure_ = error.what();
}

void PatientFile::finish() {
  write_waiting();
  if (!failure_.empty()) throw EnvironmentError(failure_);
  if (dropped_ > 0)
    throw EnvironmentError(
        fmt::format("{} lacks {} records, which did not fit into memory while it could not be written; free some space",
                    path_.string(), dropped_));
}

void PatientFile::edit(const std::function<void()>& edit, const std::function<bool(const std::string&)>& kept) {
  file_.reset();
  edit();
  file_.emplace(path_);
  waiting_.erase(std::ranges::find_if_not(waiting_, kept), waiting_.end());
  waiting_bytes_ = 0;
  for (const std::string& record : waiting_) waiting_bytes_ += record.size();
}

void sync_file(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return;
  const bool synced = fd && (::fsync(fd.get()) == 0 || errno == EINVAL);  // EINVAL: a link to a device or a pipe
  if (!synced) fail(path, errno);
}

std::filesystem::path temporary_of(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  return temporary;
}

void write_file_whole(const fs::path& path, std::string_view text) {
  const fs::path temporary = temporary_of(path);
  ::unlink(temporary.c_str());  // left by a killed process; does not follow links
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) fail(path, errno);
  int error = write_all(fd, text);
  if (!error && ::fsync(fd) != 0) error = errno;
  if (::close(fd) != 0 && !error) error = errno;
  if (!error && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (!error) return;
  ::unlink(temporary.c_str());
  fail(path, error);
}

}  // namespace gradring::train
