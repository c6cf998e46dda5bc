// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/deadline.h"
#include "kernels/base/directory.h"
#include "kernels/base/file.h"
#include "train/launch/logs/log_spec.h"
#include "train/options/terminal.h"

namespace gradring::train {

/// One stream of one worker on a terminal, each line with the worker's prefix. Complete lines are written at once, an
/// incomplete one (a prompt, a progress bar) after 100 ms. No line has text of two workers: text of another ends an
/// incomplete line, and what follows it begins a new one. An incomplete line ends another incomplete one only after
/// that stood for a second, so that progress bars of several workers do not fill the terminal. A carriage return begins
/// a line, too, so the prefix follows it.
class TeedLines {
 public:
  /// The terminal must outlive it.
  TeedLines(LinePrefix prefix, Terminal& terminal);

  void take(std::string_view text);
  /// When to call show(); unset if there is nothing to show.
  std::optional<Deadline> due() const;
  /// Writes the incomplete line if it is due.
  void show();
  /// Writes what is left and ends the line.
  void finish();

 private:
  enum class At : unsigned char { line_start, return_, inside };

  void write(std::string_view text);

  LinePrefix prefix_;
  Terminal* terminal_;
  int writer_;
  At at_ = At::line_start;
  std::string incomplete_;       ///< not yet written
  std::optional<Deadline> due_;  ///< of it
};

/// Where one stream of one worker goes.
struct OutputRoute {
  std::optional<LinePrefix> prefix{};  ///< to the terminal, each line with this prefix
  std::filesystem::path file{};        ///< to this file; empty: no file
  bool hidden = false;                 ///< with neither: discarded instead of inherited
};

/// One stream of one worker. Output to the terminal passes through the launcher; output to a file alone does not.
///
/// Errors    DeviceError if the file cannot be opened or the system has no descriptor left. If the file becomes
///           unwritable, it is closed and `on_log_failure` called; the worker continues.
class OutputStream {
 public:
  /// `terminal` is the launcher's own stream of that kind and outlives this one.
  OutputStream(const OutputRoute& route, Terminal& terminal, LogFailure on_log_failure);

  /// The worker's end of the stream; -1 if it inherits the launcher's.
  int worker_end() const { return worker_end_.get(); }
  /// Call after the worker has started.
  void close_worker_end() { worker_end_.reset(); }
  /// Readable when there is output to forward; -1 if nothing passes through the launcher, or the terminal is behind.
  int fd() const { return terminal_->is_behind() ? -1 : launcher_end_.get(); }
  /// Forwards pending output until the terminal is behind. Does not block.
  void forward();
  /// When to call show_line(), for an incomplete line; unset if there is none.
  std::optional<Deadline> line_due() const { return lines_ ? lines_->due() : std::nullopt; }
  void show_line() {
    if (lines_) lines_->show();
  }
  /// After the end of the worker: forwards the rest, which the terminal may queue.
  void finish();

 private:
  bool read_once();
  void take(std::string_view text);

  OutputRoute route_;
  Terminal* terminal_;
  LogFailure on_log_failure_;
  UniqueFd worker_end_;
  UniqueFd launcher_end_;
  UniqueFd file_;
  std::optional<TeedLines> lines_;
};

/// The log files of a run: DIR/<run id>/attempt_<n>/<local rank>/{stdout.log, stderr.log, error.json}, with <run id>_2
/// for a second run of the same id. A later attempt finds DIR/<run id> where it was moved, and makes a new one if it was
/// removed. With redirected output but no --log-dir, DIR is created under $TMPDIR or /tmp and
/// kept.
///
/// Errors    DeviceError that names the folder that cannot be created.
class LogFolder {
 public:
  LogFolder(LogSpec spec, const std::string& run_id);

  /// Empty if this run keeps no files.
  const std::filesystem::path& path() const { return path_; }
  /// The user named no folder and must be told its path.
  bool is_temporary() const { return is_temporary_; }
  /// Creates the folder for a worker's attempt and returns it; empty if this run keeps no files.
  std::filesystem::path worker_folder(int attempt, int local_rank);
  /// The route of a stream of the worker with this folder.
  OutputRoute route(Stream stream, const LineOwner& owner, const std::filesystem::path& folder) const;

 private:
  LogSpec spec_;
  bool is_temporary_ = false;
  std::filesystem::path path_;
  Directory directory_;  // the same, open: another launcher may have the path by the next attempt
};

}  // namespace gradring::train
