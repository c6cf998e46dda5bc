// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gradring::train {

/// Appends lines to a text file. If a line does not fit on the disk, removes its part and throws.
///
/// Errors    EnvironmentError with path and reason.
class LineFile {
 public:
  /// Opens an existing file, or creates one.
  explicit LineFile(const std::filesystem::path& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void append(std::string_view line);
  /// The same for bytes that need no line break, such as a record of a binary file.
  void append_bytes(std::string_view bytes);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  long long size_ = 0;  // of the complete lines
};

/// A file to which records are appended for as long as a run lasts. Records that cannot be written, for example on a
/// full disk, wait in memory (1 MiB, then later ones are dropped) and are written when there is space. Reports the first
/// failure, and each one after a success, on stderr.
class PatientFile {
 public:
  /// Errors    EnvironmentError if the file cannot be opened.
  explicit PatientFile(const std::filesystem::path& path) : path_(path), file_(std::in_place, path) {}
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
  void write_waiting();

  std::filesystem::path path_;
  std::optional<LineFile> file_;  // closed during edit()
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::size_t dropped_ = 0;  // records
  std::string failure_;      // of the last write; empty if it succeeded
};

/// A PatientFile whose records are lines.
class PatientLineFile {
 public:
  explicit PatientLineFile(const std::filesystem::path& path) : file_(path) {}
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
void sync_file(const std::filesystem::path& path);

/// The temporary file of write_file_whole, which a killed process may leave.
std::filesystem::path temporary_of(const std::filesystem::path& path);

/// Writes a file atomically: to a temporary file, which is synced and renamed.
///
/// Errors    EnvironmentError with path and reason; the temporary file is removed.
void write_file_whole(const std::filesystem::path& path, std::string_view text);

/// Throws the EnvironmentError "cannot write <path>: <reason>; choose another <other>"; `error` is an errno.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error, const char* other);

}  // namespace gradring::train
