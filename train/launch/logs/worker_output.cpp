// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/worker_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "train/launch/workers/private_folder.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Longer than the pauses between the writes of one line, short for who waits for a prompt.
constexpr std::chrono::milliseconds kIncompleteDelay(100);
constexpr std::chrono::seconds kOtherLineStands(1);
constexpr std::size_t kMaxIncompleteBytes = 64 * 1024;

constexpr int kMaxReads = 16;         // so that a busy worker does not starve the launcher
constexpr int kMaxFinalReads = 1024;  // a process that outlives its worker may write forever

UniqueFd open_to_write(const fs::path& path, int more) {
  UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | more, 0666));  // do not wait for a FIFO's reader
  if (!file) throw DeviceError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  ::fcntl(file.get(), F_SETFL, more & O_APPEND);  // blocking again, as the worker expects
  return file;
}

[[noreturn]] void throw_cannot_create(const fs::path& folder, const std::string& why) {
  throw DeviceError(
      fmt::format("cannot create the log folder {}: {}; set --log-dir to a writable folder", folder.string(), why));
}

void create(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_cannot_create(folder, error.message());
}

/// A run id as the name of a folder.
std::string folder_name(std::string run_id) {
  std::ranges::replace(run_id, '/', '_');
  return run_id.empty() || run_id.starts_with('.') ? "_" + run_id : run_id;
}

/// Creates the first of parent/name, parent/name_2, ... that does not exist.
fs::path create_new(const fs::path& parent, const std::string& name) {
  create(parent);
  for (int i = 1;; ++i) {
    fs::path folder = parent / (i == 1 ? name : fmt::format("{}_{}", name, i));
    std::error_code error;
    if (fs::create_directory(folder, error)) return folder;
    if (error && error != std::errc::file_exists) throw_cannot_create(folder, error.message());
  }
}

fs::path create_temporary() {
  std::string name = (temporary_folder() / "gradring-logs-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw_cannot_create(name, std::strerror(errno));
  return name;
}

}  // namespace

TeedLines::TeedLines(LinePrefix prefix, Terminal& terminal)
    : prefix_(std::move(prefix)), terminal_(&terminal), writer_(terminal.add_writer()) {}

void TeedLines::take(std::string_view text) {
  incomplete_ += text;
  if (const auto end = incomplete_.rfind('\n'); end != std::string::npos) {
    write(std::string_view(incomplete_).substr(0, end + 1));
    incomplete_.erase(0, end + 1);
    due_.reset();
  }
  if (incomplete_.size() >= kMaxIncompleteBytes) write(std::exchange(incomplete_, {}));
  if (incomplete_.empty())
    due_.reset();
  else if (!due_)
    due_ = Deadline::after(kIncompleteDelay);
}

std::optional<Deadline> TeedLines::due() const {
  if (!due_ || terminal_->is_behind()) return std::nullopt;
  std::chrono::nanoseconds wait = due_->remaining();
  if (const auto age = terminal_->age_of_other_line(writer_))
    wait = std::max<std::chrono::nanoseconds>(wait, kOtherLineStands - *age);
  return Deadline::after(wait);
}

void TeedLines::show() {
  const auto time = due();
  if (!time || !time->passed()) return;
  write(std::exchange(incomplete_, {}));
  due_.reset();
}

void TeedLines::finish() {
  if (!incomplete_.empty()) write(std::exchange(incomplete_, {}));
  due_.reset();
  if (terminal_->has_line_of(writer_)) write("\n");
}

void TeedLines::write(std::string_view text) {
  if (!terminal_->has_line_of(writer_) && at_ != At::line_start) {  // another has ended the line
    at_ = At::line_start;
    if (text.starts_with('\n')) text.remove_prefix(1);
  }
  std::string shown;
  for (const char c : text) {
    const bool ends_with_return = at_ == At::return_ && c == '\n';
    if (c == '\r' && at_ != At::inside) continue;  // the cursor is at the start of the line
    if (at_ != At::inside && !ends_with_return) shown += prefix_.now();
    shown += c;
    at_ = c == '\n' ? At::line_start : c == '\r' ? At::return_ : At::inside;
  }
  terminal_->write(shown, writer_);
}

OutputStream::OutputStream(const OutputRoute& route, Terminal& terminal, LogFailure on_log_failure)
    : route_(route), terminal_(&terminal), on_log_failure_(std::move(on_log_failure)) {
  // O_APPEND: a worker may direct both its streams to the same file.
  if (!route_.file.empty()) file_ = open_to_write(route_.file, O_CREAT | O_TRUNC | O_APPEND);
  if (route_.prefix) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw DeviceError(std::string("cannot create a pipe for a worker's output: ") + std::strerror(errno));
    launcher_end_ = UniqueFd(ends[0]);
    worker_end_ = UniqueFd(ends[1]);
    lines_.emplace(*route_.prefix, terminal);
    ::fcntl(launcher_end_.get(), F_SETFL, O_NONBLOCK);
  } else if (file_) {
    worker_end_ = std::move(file_);
  } else if (route_.hidden) {
    worker_end_ = open_to_write("/dev/null", 0);
  }
}

void OutputStream::forward() {
  for (int i = 0; i < kMaxReads && !terminal_->is_behind() && read_once(); ++i) {
  }
}

void OutputStream::finish() {
  for (int i = 0; i < kMaxFinalReads && read_once(); ++i) {
  }
  launcher_end_.reset();
  if (lines_) lines_->finish();
}

/// Returns whether there may be more.
bool OutputStream::read_once() {
  if (!launcher_end_) return false;
  char buffer[16 * 1024];
  const ssize_t size = ::read(launcher_end_.get(), buffer, sizeof(buffer));
  if (size > 0) take({buffer, static_cast<std::size_t>(size)});
  if (size == 0) launcher_end_.reset();
  return size > 0 || (size < 0 && errno == EINTR);
}

void OutputStream::take(std::string_view text) {
  if (const int error = file_ ? write_all(file_.get(), text) : 0; error != 0) {
    file_.reset();
    if (on_log_failure_) on_log_failure_(route_.file, error);
  }
  if (lines_) lines_->take(text);
}

LogFolder::LogFolder(LogSpec spec, const std::string& run_id) : spec_(std::move(spec)) {
  is_temporary_ = spec_.folder.empty() && !spec_.redirects.empty();
  if (!spec_.folder.empty() || is_temporary_)
    path_ = create_new(is_temporary_ ? create_temporary() : fs::absolute(spec_.folder), folder_name(run_id));
  if (!path_.empty()) directory_ = Directory(path_);
}

fs::path LogFolder::worker_folder(int attempt, int local_rank) {
  if (path_.empty()) return {};
  if (directory_ && directory_.is_removed()) {
    path_ = create_new(path_.parent_path(), path_.filename());
    directory_ = Directory(path_);
  }
  if (const fs::path now = directory_ ? directory_.current_path() : fs::path(); !now.empty()) path_ = now;
  fs::path folder = path_ / fmt::format("attempt_{}", attempt) / std::to_string(local_rank);
  create(folder);
  return folder;
}

OutputRoute LogFolder::route(Stream stream, const LineOwner& owner, const fs::path& folder) const {
  const bool teed = spec_.tee.has(owner.local_rank, stream);
  const bool kept = teed || spec_.redirects.has(owner.local_rank, stream);
  const bool shown = spec_.shown.empty() || std::ranges::find(spec_.shown, owner.local_rank) != spec_.shown.end();
  OutputRoute route{.hidden = !shown};
  if (teed && shown) route.prefix = LinePrefix(spec_.prefix, owner);
  if (kept && !folder.empty()) route.file = folder / (stream == Stream::out ? "stdout.log" : "stderr.log");
  return route;
}

}  // namespace gradring::train
