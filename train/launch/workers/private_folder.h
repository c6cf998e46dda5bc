// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "kernels/base/file.h"
#include "train/options/environment_variable.h"

namespace gradring::train {

/// $TMPDIR, or /tmp if that is unset or too long for the path of a Unix socket within.
std::filesystem::path temporary_folder();

/// Opens a folder, but not through a symbolic link in its last component.
UniqueFd open_folder(const std::filesystem::path& path);

/// A folder that only this user can enter and that all processes of the user on this host find at the same path:
/// `runtime_dir` if it is set and private (owned by this user, mode 0700, no symbolic link); else gradring-UID in
/// `temporary`, which lock() creates with mode 0700 and remove_if_empty() removes. Another user can occupy that name in
/// a shared /tmp, so owner and mode are checked whenever the folder is opened.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::filesystem::path& runtime_dir = system_runtime_dir(),
                         const std::filesystem::path& temporary = temporary_folder());

  const std::filesystem::path& path() const { return path_; }

  /// The folder for reading; empty if it does not exist.
  ///
  /// Errors    DeviceError if it is a link, or its owner or mode is wrong.
  UniqueFd open() const;

  /// The folder, created if missing and locked (flock) until the descriptor is closed, against other processes of this
  /// user that change it.
  ///
  /// Errors    DeviceError as open(); if it cannot be created; or if another process holds the lock for 10 s.
  UniqueFd lock() const;

  /// Removes gradring-UID if it is empty. The caller holds the lock.
  void remove_if_empty() const noexcept;

  /// $XDG_RUNTIME_DIR; empty if it is unset or relative.
  static std::filesystem::path system_runtime_dir();

 private:
  std::filesystem::path path_;
  bool is_ours_to_remove_ = false;
};

/// Creates a file with mode 0600, for a secret.
///
/// Errors    DeviceError if the path exists, or the text cannot be written.
void write_private_file(const std::filesystem::path& path, const std::string& text);

/// A secret of at most 4096 bytes from a file or pipe, without trailing line ends.
///
/// Errors    InvalidArgument if the file does not exist, is empty, belongs to a user other than this one and root, or
///           is accessible to others; DeviceError if it cannot be read, or is larger.
std::string read_private_file(const std::filesystem::path& path);

/// The secret of a run over several nodes: GRADRING_TOKEN, or what the file GRADRING_TOKEN_FILE holds. Empty if neither
/// is set.
///
/// Errors    InvalidArgument if both are set, or the secret is shorter than 16 characters; as read_private_file.
std::string given_token(const VariableLookup& lookup);

}  // namespace gradring::train
