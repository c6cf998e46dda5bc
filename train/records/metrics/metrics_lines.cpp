// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/metrics_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "kernels/base/directory.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kMostWarnings = 10;

[[noreturn]] void fail_to_read(const std::filesystem::path& path, const std::string& reason) {
  throw EnvironmentError(fmt::format("cannot read {}: {}", path.string(), reason));
}

}  // namespace

bool FileLines::next() {
  line_.clear();
  bytes_ = 0;
  is_complete_ = false;
  while (!is_complete_ && bytes_ <= kMostSkippedBytes && fill()) {
    const std::size_t text = std::min(rest_.find('\n'), rest_.size());
    is_complete_ = text < rest_.size();
    line_.append(rest_.substr(0, std::min(text, kMostLineBytes - line_.size())));
    const std::size_t used = text + (is_complete_ ? 1 : 0);
    rest_.remove_prefix(used);
    bytes_ += used;
  }
  return bytes_ > 0 && !has_failed_;
}

void FileLines::rewind() {
  ::lseek(file_.get(), 0, SEEK_SET);
  rest_ = {};
  is_at_end_ = false;
}

/// Reads a part, unless there is a rest; returns false at the end of the file.
bool FileLines::fill() {
  if (!rest_.empty() || is_at_end_) return !rest_.empty();
  ssize_t count = 0;
  do count = ::read(file_.get(), part_.data(), part_.size());
  while (count < 0 && errno == EINTR);
  has_failed_ = count < 0;
  rest_ = std::string_view(part_.data(), static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  is_at_end_ = count <= 0;  // also of a file that grows
  return count > 0;
}

MetricsLines::MetricsLines(std::filesystem::path path)
    : path_(std::move(path)), file_(open_file(path_, O_RDONLY | O_NONBLOCK)) {
  struct stat facts {};
  if (!file_ || ::fstat(file_.get(), &facts) != 0) fail_to_read(path_, std::generic_category().message(errno));
  if (!S_ISREG(facts.st_mode)) fail_to_read(path_, "it is not a regular file");
}

std::optional<std::string_view> MetricsLines::next() {
  const bool has_line = lines_.next();
  if (lines_.has_failed()) fail_to_read(path_, "a read failed");
  if (!has_line) return std::nullopt;
  ++count_;
  if (lines_.text_bytes() > kMostSkippedBytes)
    fail_to_read(path_, fmt::format("line {} is longer than {} MiB; it was overwritten, or its disk is damaged", count_,
                                    kMostSkippedBytes >> 20));
  return lines_.line();
}

void MetricsLines::rewind() {
  lines_.rewind();
  count_ = 0;
}

void MetricsLines::ignore(std::string_view problem) {
  if (warnings_.size() == kMostWarnings) {
    ++more_ignored_;
    return;
  }
  const std::string what = lines_.text_bytes() > kMostLineBytes
                               ? fmt::format("longer than {} MiB", kMostLineBytes >> 20)
                           : !lines_.is_complete() ? "incomplete"
                           : problem.empty()       ? "not an event"
                                                   : fmt::format("not an event ({})", problem);
  warnings_.push_back(fmt::format("{}: line {} is {}, and is ignored", path_.string(), count_, what));
}

std::vector<std::string> MetricsLines::warnings() const {
  std::vector<std::string> all = warnings_;
  if (more_ignored_ > 0)
    all.push_back(
        fmt::format("{}: {} more line{} ignored", path_.string(), more_ignored_, more_ignored_ == 1 ? " is" : "s are"));
  return all;
}

}  // namespace gradring::train
