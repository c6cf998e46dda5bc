// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/directory.h"

namespace gradring::train {

/// Appends lines to a text file. If a line does not fit on the disk, removes its part and throws.
///
/// Errors    EnvironmentError with path and reason.
class LineFile {
 public:
  /// Opens an existing file, or creates one.
  explicit LineFile(const FileAt& file);
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void append(std::string_view line);
  /// The same for bytes that need no line break, such as a record of a binary file.
  void append_bytes(std::string_view bytes);

  enum class State : std::uint8_t {
    intact,
    removed,  ///< its name leads to no file, or to another one
    cut,      ///< it is shorter than what was written
  };
  /// What others have done to the file.
  State state() const;

 private:
  FileAt file_;
  UniqueFd fd_;
  long long size_ = 0;  // of the complete lines
};

/// Removes an incomplete last line of a file.
///
/// Errors    EnvironmentError.
void remove_incomplete_line(const FileAt& file);

/// Where a file that was removed or cut is continued.
struct Renewal {
  FileAt file;       ///< that file, or another
  std::string head;  ///< its first record; empty: none
};

/// A file to which records are appended for as long as a run lasts. Records that cannot be written, for example on a
/// full disk, wait in memory (1 MiB, then later ones are dropped) and are written when there is space. Reports the first
/// failure, and each one after a success, on stderr.
///
/// If the file is removed or cut meanwhile, this is reported, and it is begun anew. A removed one only after a moment,
/// since rm -r may be removing its folder, too.
class PatientFile {
 public:
  /// Receives the state and the first record that the file will lack (empty: not known).
  using Renew = std::function<Renewal(LineFile::State state, const std::string& next)>;

  /// Errors    EnvironmentError if the file cannot be opened.
  PatientFile(const FileAt& file, Renew renew, std::chrono::milliseconds moment = std::chrono::seconds(1))
      : at_(file), renew_(std::move(renew)), moment_(moment), file_(std::in_place, file) {}
  /// Tries to write the waiting records.
  ~PatientFile() { write_waiting(); }
  PatientFile(const PatientFile&) = delete;
  PatientFile& operator=(const PatientFile&) = delete;

  void append(std::string_view record);
  /// Called at the end: writes the waiting records.
  ///
  /// Errors    EnvironmentError if records still cannot be written, or were dropped.
  void finish();
  /// Calls `edit`, which may change the closed file, and drops waiting records from the first that is not `kept`.
  void edit(const std::function<void()>& edit, const std::function<bool(const std::string& record)>& kept);

 private:
  using Clock = std::chrono::steady_clock;
  void write_waiting(bool at_once = false);
  LineFile::State state() const { return file_ ? file_->state() : LineFile::State::removed; }
  bool is_ready(bool at_once);
  void begin_anew(LineFile::State state);

  FileAt at_;
  Renew renew_;
  std::chrono::milliseconds moment_;
  std::optional<LineFile> file_;                 // closed during edit(), and if it could not be begun anew
  std::optional<Clock::time_point> removed_at_;  // found so
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::size_t dropped_ = 0;  // records
  std::string failure_;      // of the last write; empty if it succeeded
};

/// A PatientFile whose records are lines. Begun anew, it keeps its complete lines and continues with `head(next)`.
class PatientLineFile {
 public:
  using Head = std::function<std::string(const std::string& next)>;

  explicit PatientLineFile(const FileAt& file, Head head = {},
                           std::chrono::milliseconds moment = std::chrono::seconds(1));
  void append(std::string_view line) { file_.append(std::string(line) + '\n'); }
  void finish() { file_.finish(); }
  void edit(const std::function<void()>& edit, const std::function<bool(const std::string& line)>& kept) {
    file_.edit(edit, [&kept](const std::string& record) { return kept(record.substr(0, record.size() - 1)); });
  }

 private:
  PatientFile file_;
};

/// fsync of a file; does nothing if the file was removed.
///
/// Errors    EnvironmentError with path and reason.
void sync_file(const FileAt& file);

/// The temporary file of write_file_whole, which a killed process may leave.
std::filesystem::path temporary_of(const std::filesystem::path& path);

/// Writes a file atomically: to a temporary file, which is synced and renamed.
///
/// Errors    EnvironmentError with path and reason; the temporary file is removed.
void write_file_whole(const FileAt& file, std::string_view text);

/// Throws the EnvironmentError "cannot write <path>: <reason>; choose another <other>"; `error` is an errno.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error, const char* other);

}  // namespace gradring::train
