// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "kernels/base/file.h"
#include "train/options/file_advice.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// What the user can change if a file cannot be written.
constexpr const char* kRunDir = "--run-dir";

/// The end of a temporary file's name.
constexpr const char* kTemporary = ".tmp";

/// Of a PatientFile, in bytes.
constexpr std::size_t kMostWaitingBytes = 1 << 20;

[[noreturn]] void fail(const fs::path& path, int error) { throw_write_error(path, error, kRunDir); }

}  // namespace

void throw_write_error(const fs::path& path, int error, const char* other) {
  throw EnvironmentError("cannot write " + path.string() + ": " + std::generic_category().message(error) + "; " +
                         advice_on(error, other));
}

LineFile::LineFile(const FileAt& file) : file_(file), fd_(open_file(file, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK)) {
  if (!fd_ && errno == ENXIO)  // a pipe that nobody reads, for which others would wait
    throw EnvironmentError("cannot write " + file.path().string() + ": it is not a regular file; remove it");
  if (!fd_) fail(file.path(), errno);
  size_ = ::lseek(fd_.get(), 0, SEEK_END);
}

void LineFile::append(std::string_view line) { append_bytes(std::string(line) + '\n'); }

void LineFile::append_bytes(std::string_view bytes) {
  if (const int error = write_all(fd_.get(), bytes)) {
    if (::ftruncate(fd_.get(), size_) != 0) fail(file_.path(), errno);
    fail(file_.path(), error);
  }
  size_ += static_cast<long long>(bytes.size());
}

LineFile::State LineFile::state() const {
  struct stat opened {
  }, named{};
  if (::fstat(fd_.get(), &opened) != 0) return State::intact;  // the next write tells
  if (::fstatat(file_.directory(), file_.name(), &named, 0) != 0)
    return errno == ENOENT || errno == ENOTDIR ? State::removed : State::intact;
  if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) return State::removed;
  return S_ISREG(opened.st_mode) && opened.st_size < size_ ? State::cut : State::intact;
}

void remove_incomplete_line(const FileAt& file) {
  const UniqueFd fd = open_file(file, O_RDWR | O_NONBLOCK);
  if (!fd && errno == ENOENT) return;
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0) fail(file.path(), errno);
  if (!S_ISREG(facts.st_mode)) return;
  std::string part(64 * 1024, '\0');
  off_t end = facts.st_size;  // no line ends behind it
  while (end > 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(part.size()));
    const ssize_t count = ::pread(fd.get(), part.data(), static_cast<std::size_t>(end - begin), begin);
    if (count <= 0) fail(file.path(), count < 0 ? errno : EIO);
    const std::size_t line_end = part.rfind('\n', static_cast<std::size_t>(count) - 1);
    if (line_end != std::string::npos) {
      end = begin + static_cast<off_t>(line_end) + 1;
      break;
    }
    end = begin;
  }
  if (end < facts.st_size && ::ftruncate(fd.get(), end) != 0) fail(file.path(), errno);
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

void PatientFile::write_waiting(bool at_once) try {
  if (waiting_.empty() || !is_ready(at_once)) return;
  while (!waiting_.empty()) {
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

bool PatientFile::is_ready(bool at_once) {
  const LineFile::State found = state();
  if (found != LineFile::State::removed) removed_at_.reset();
  if (found == LineFile::State::intact) return true;
  if (found == LineFile::State::removed && !at_once) {
    if (!removed_at_) removed_at_ = Clock::now();
    if (Clock::now() - *removed_at_ < moment_) return false;
  }
  begin_anew(found);
  return true;
}

void PatientFile::begin_anew(LineFile::State found) {
  Renewal renewal = renew_(found, waiting_.empty() ? std::string() : waiting_.front());
  file_.reset();
  file_.emplace(renewal.file);
  print_to_stderr(fmt::format("gradring train: {} was {} during the run: it is begun anew\n", at_.path().string(),
                              found == LineFile::State::cut ? "cut" : "removed"));
  at_ = renewal.file;
  removed_at_.reset();
  if (renewal.head.empty()) return;
  waiting_bytes_ += renewal.head.size();
  waiting_.push_front(std::move(renewal.head));
}

void PatientFile::finish() {
  write_waiting(true);
  if (!failure_.empty()) throw EnvironmentError(failure_);
  if (dropped_ > 0)
    throw EnvironmentError(
        fmt::format("{} lacks {} records, which did not fit into memory while it could not be written; free some space",
                    at_.path().string(), dropped_));
}

void PatientFile::edit(const std::function<void()>& edit, const std::function<bool(const std::string&)>& kept) {
  const LineFile::State before = state();
  file_.reset();
  edit();
  waiting_.erase(std::ranges::find_if_not(waiting_, kept), waiting_.end());
  waiting_bytes_ = 0;
  for (const std::string& record : waiting_) waiting_bytes_ += record.size();
  if (before == LineFile::State::intact)
    file_.emplace(at_);
  else
    begin_anew(before);
}

PatientLineFile::PatientLineFile(const FileAt& file, Head head, std::chrono::milliseconds moment)
    : file_(
          file,
          [file, head = std::move(head)](LineFile::State, const std::string& next) {
            remove_incomplete_line(file);
            return Renewal{.file = file, .head = head ? head(next) : std::string()};
          },
          moment) {}

void sync_file(const FileAt& file) {
  const UniqueFd fd = open_file(file, O_RDONLY | O_NONBLOCK);
  if (!fd && errno == ENOENT) return;
  const bool synced = fd && (::fsync(fd.get()) == 0 || errno == EINVAL);  // EINVAL: a link to a device or a pipe
  if (!synced) fail(file.path(), errno);
}

std::filesystem::path temporary_of(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += kTemporary;
  return temporary;
}

void write_file_whole(const FileAt& file, std::string_view text) {
  const FileAt temporary = file.with_suffix(kTemporary);
  ::unlinkat(temporary.directory(), temporary.name(), 0);  // left by a killed process; does not follow links
  UniqueFd fd = open_file(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (!fd) fail(file.path(), errno);
  int error = write_all(fd.get(), text);
  if (!error && ::fsync(fd.get()) != 0) error = errno;
  if (::close(fd.release()) != 0 && !error) error = errno;
  if (!error && ::renameat(temporary.directory(), temporary.name(), file.directory(), file.name()) != 0) error = errno;
  if (!error) return;
  ::unlinkat(temporary.directory(), temporary.name(), 0);
  fail(file.path(), error);
}

}  // namespace gradring::train
