// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/followed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace gradring::train {
namespace {

/// Bytes before the offset that are compared to notice that a file was truncated and has grown again.
constexpr std::size_t kCompared = 4096;

}  // namespace

/// Whether the bytes before the offset are no longer those that were read.
bool FollowedFile::was_rewritten(const UniqueFd& file) const {
  std::string found(before_.size(), '\0');
  const off_t begin = offset_ - static_cast<off_t>(before_.size());
  return ::pread(file.get(), found.data(), found.size(), begin) != static_cast<ssize_t>(found.size()) ||
         found != before_;
}

void FollowedFile::forget() {
  offset_ = 0;
  before_.clear();
  rest_.clear();
  is_in_long_line_ = false;
}

/// Gives out the complete lines of `rest_` and removes them. Its first `searched` bytes have no line break.
void FollowedFile::take_lines(std::size_t searched, const std::function<void(std::string_view line)>& use) {
  std::size_t begin = 0;
  for (std::size_t end = rest_.find('\n', searched); end != rest_.npos; end = rest_.find('\n', begin)) {
    const std::string_view line = std::string_view(rest_).substr(begin, end - begin);
    if (!std::exchange(is_in_long_line_, false)) use(line);
    begin = end + 1;
  }
  if (is_in_long_line_ || rest_.size() - begin > most_line_bytes_) {
    is_in_long_line_ = true;
    begin = rest_.size();
  }
  if (begin == 0) return;
  const std::size_t compared = std::min(begin, kCompared);
  before_.assign(rest_, begin - compared, compared);
  offset_ += static_cast<off_t>(begin);
  rest_.erase(0, begin);
}

FollowedFile::Change FollowedFile::poll(const std::function<void(std::string_view line)>& use) {
  constexpr off_t kBlock = 1 << 18;
  // Opened anew: a network file system looks at the server then, and the file may have been replaced.
  const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return Change::none;
  written_at_ = static_cast<double>(facts.st_mtim.tv_sec) + 1e-9 * static_cast<double>(facts.st_mtim.tv_nsec);
  const bool is_other = inode_ != 0 && facts.st_ino != inode_;
  inode_ = facts.st_ino;
  if (is_other || facts.st_size < offset_ || was_rewritten(file)) {
    forget();
    return Change::changed;
  }
  const off_t before = offset_;
  std::string block(static_cast<std::size_t>(std::min<off_t>(kBlock, facts.st_size - offset_ + 1)), '\0');
  rest_.clear();
  std::uint64_t skipped = 0;  // of a long line: the next call continues
  for (off_t at = offset_; skipped <= kMostSkippedBytes;) {
    const ssize_t size = ::pread(file.get(), block.data(), block.size(), at);
    if (size <= 0) break;
    at += size;
    if (is_in_long_line_) skipped += static_cast<std::uint64_t>(size);
    const std::size_t searched = rest_.size();
    rest_.append(block, 0, static_cast<std::size_t>(size));
    take_lines(searched, use);
  }
  return offset_ > before ? Change::more : Change::none;
}

}  // namespace gradring::train
