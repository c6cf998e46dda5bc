// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/metrics_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kMostWarnings = 10;

[[noreturn]] void fail_to_read(const std::filesystem::path& path, const std::string& reason) {
  throw EnvironmentError(fmt::format("cannot read {}: {}", path.string(), reason));
}

}  // namespace

MetricsLines::MetricsLines(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) fail_to_read(path_, error.message());
  if (!std::filesystem::is_regular_file(status)) fail_to_read(path_, "it is not a regular file");
  file_.open(path_);
  if (!file_) fail_to_read(path_, std::generic_category().message(errno));
}

std::optional<std::string_view> MetricsLines::next() {
  line_.clear();
  is_too_long_ = false;
  std::uint64_t line_bytes = 0;
  for (bool has_begun = false;; has_begun = true) {
    file_.getline(part_.data(), part_.size());
    if (file_.bad()) fail_to_read(path_, "a read failed");
    const auto read = static_cast<std::size_t>(file_.gcount());
    const bool has_more = file_.fail() && read > 0;  // the part is full
    const bool has_break = !file_.fail() && !file_.eof();
    if (read == 0 && !has_begun) return std::nullopt;
    const std::size_t bytes = read - (has_break ? 1 : 0);
    line_bytes += bytes;
    if (line_bytes > kMostSkippedBytes)
      fail_to_read(path_, fmt::format("line {} is longer than {} MiB; it was overwritten, or its disk is damaged",
                                      count_ + 1, kMostSkippedBytes >> 20));
    is_too_long_ = is_too_long_ || bytes > kMostLineBytes - line_.size();
    line_.append(part_.data(), std::min(bytes, kMostLineBytes - line_.size()));
    if (!has_more) break;
    file_.clear();
  }
  ++count_;
  return line_;
}

void MetricsLines::rewind() {
  file_.clear();
  file_.seekg(0);
  count_ = 0;
}

void MetricsLines::ignore(std::string_view problem) {
  if (warnings_.size() == kMostWarnings) {
    ++more_ignored_;
    return;
  }
  const std::string what = is_too_long_      ? fmt::format("longer than {} MiB", kMostLineBytes >> 20)
                           : file_.eof()     ? "incomplete"
                           : problem.empty() ? "not an event"
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
