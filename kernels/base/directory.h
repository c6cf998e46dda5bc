// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/file.h"

namespace gradring {

/// A file or folder as system calls such as openat take it: a name relative to an open directory, which must stay open.
/// A path alone is one, too: it is resolved from the start at each use.
class FileAt {
 public:
  FileAt(std::filesystem::path path) : name_(path), path_(std::move(path)) {}  // NOLINT(google-explicit-constructor)
  FileAt(const std::string& path) : FileAt(std::filesystem::path(path)) {}     // NOLINT(google-explicit-constructor)
  FileAt(int directory, std::filesystem::path name, std::filesystem::path path)
      : directory_(directory), name_(std::move(name)), path_(std::move(path)) {}

  int directory() const { return directory_; }
  const char* name() const { return name_.c_str(); }
  /// For messages.
  const std::filesystem::path& path() const { return path_; }

  /// An entry of this folder.
  FileAt operator/(const std::filesystem::path& entry) const { return {directory_, name_ / entry, path_ / entry}; }
  /// The folder that it is in.
  FileAt parent() const;
  /// The file beside it whose name ends with `suffix`: a.txt.tmp.
  FileAt with_suffix(std::string_view suffix) const;

 private:
  int directory_ = AT_FDCWD;
  std::filesystem::path name_;
  std::filesystem::path path_;
};

/// A directory that is held open. Its files are found in it wherever it is moved, and never in another one that has its
/// path later.
class Directory {
 public:
  Directory() = default;  ///< none
  /// Holds none, and sets errno, if the directory cannot be opened.
  explicit Directory(const std::filesystem::path& path);

  explicit operator bool() const { return bool(fd_); }
  const UniqueFd& fd() const { return fd_; }
  /// By which it was opened, without a trailing slash.
  const std::filesystem::path& path() const { return path_; }
  /// The file of that path: in this directory if the path begins with path(), else the path alone.
  FileAt at(const std::filesystem::path& file) const;
  /// Whether it was removed.
  bool is_removed() const;
  /// Its path now: path() if it still names this directory, else the absolute path to which it was moved. Empty if it
  /// was removed, or is not known.
  std::filesystem::path current_path() const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

/// openat with `flags` and O_CLOEXEC; none, and errno, if it fails. A new file has the mode 0666 without the umask, as
/// those of other programs, so that groups can share them (secrets: train/launch/workers/private_folder.h).
UniqueFd open_file(const FileAt& file, int flags);

/// Creates a folder with the mode 0777 without the umask. Returns 0, or errno.
int make_folder(const FileAt& folder);

/// Whether `file` still names the open file or folder: another process may have removed or replaced it.
bool is_at(const FileAt& file, const UniqueFd& opened);

/// The names in a folder, in no order; sets `error` to errno, or 0.
std::vector<std::string> names_in(const FileAt& folder, int& error);

}  // namespace gradring
