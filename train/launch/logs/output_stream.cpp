// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/output_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;  // beyond, a line is shown in parts
constexpr int kReadsAtOnce = 16;                 // so that a worker that never pauses leaves the launcher time
constexpr int kReadsAtTheEnd = 1024;             // a process that outlives its worker may write for ever

UniqueFd open_to_write(const std::filesystem::path& path, int more) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | more, 0644));
  if (!file) throw DeviceError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  return file;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

OutputStream::OutputStream(const OutputRoute& route, Terminal& terminal) : route_(route), terminal_(&terminal) {
  // Appended to: a worker may have given the same file to both its streams.
  if (!route_.file.empty()) file_ = open_to_write(route_.file, O_CREAT | O_TRUNC | O_APPEND);
  if (route_.prefix) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw DeviceError(std::string("cannot connect to a worker's output: ") + std::strerror(errno));
    launcher_end_ = UniqueFd(ends[0]);
    worker_end_ = UniqueFd(ends[1]);
    ::fcntl(launcher_end_.get(), F_SETFL, O_NONBLOCK);
  } else if (file_) {
    worker_end_ = std::move(file_);
  } else if (route_.hidden) {
    worker_end_ = open_to_write("/dev/null", 0);
  }
}

void OutputStream::pass_on() {
  for (int i = 0; i < kReadsAtOnce && !terminal_->is_behind() && read_once(); ++i) {
  }
}

void OutputStream::finish() {
  for (int i = 0; i < kReadsAtTheEnd && read_once(); ++i) {
  }
  launcher_end_.reset();
  if (!unfinished_.empty()) write_line(unfinished_);
  unfinished_.clear();
}

/// Whether there may be more.
bool OutputStream::read_once() {
  if (!launcher_end_) return false;
  char buffer[16 * 1024];
  const ssize_t size = ::read(launcher_end_.get(), buffer, sizeof(buffer));
  if (size > 0) take({buffer, static_cast<std::size_t>(size)});
  if (size == 0) launcher_end_.reset();
  return size > 0 || (size < 0 && errno == EINTR);
}

void OutputStream::take(std::string_view text) {
  if (file_ && !write_all(file_.get(), text)) {
    terminal_->write(
        fmt::format("cannot write {}: {}; the rest of it is lost\n", route_.file.string(), std::strerror(errno)));
    file_.reset();
  }
  unfinished_ += text;
  std::size_t begin = 0;
  for (auto end = unfinished_.find('\n'); end != std::string::npos; end = unfinished_.find('\n', begin)) {
    write_line(std::string_view(unfinished_).substr(begin, end - begin));
    begin = end + 1;
  }
  unfinished_.erase(0, begin);
  if (unfinished_.size() < kLongestLine) return;
  write_line(unfinished_);
  unfinished_.clear();
}

void OutputStream::write_line(std::string_view line) {
  terminal_->write(fmt::format("{}{}\n", route_.prefix->now(), line));
}

}  // namespace gradring::train
