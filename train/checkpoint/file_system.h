// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gradring::train {

/// Bytes that can be read from any place on: an open file, or memory. Closed when destroyed.
class InputFile {
 public:
  virtual ~InputFile() = default;
  /// When it was opened.
  virtual std::uint64_t size() const = 0;
  /// Fills `out` from the front with the bytes at `offset`; may stop short. 0 only at the end, or for an empty `out`.
  ///
  /// Errors    FileError.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// A new file that is written from front to end. Closed when destroyed; errors of closing show in close() alone.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  /// Writes some of `bytes`, from their front; returns how many.
  ///
  /// Errors    FileError.
  virtual std::size_t write(std::span<const std::byte> bytes) = 0;
  /// Returns when all that was written lies on the disk: fsync.
  virtual void sync() = 0;
  virtual void close() = 0;
};

/// The system calls that checkpoints are saved and found with, one method each, so that a test can let any one of them fail.
///
/// Errors    FileError from every method, with the operation, the path and errno; nothing has happened then.
/// Threads   any.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Makes a file that was not there.
  virtual std::unique_ptr<OutputFile> create(const std::filesystem::path& path) = 0;
  /// A regular file, to be read. Never waits, as opening a FIFO would; what is no regular file gives EISDIR, EINVAL or ENXIO.
  virtual std::unique_ptr<InputFile> open(const std::filesystem::path& path) = 0;
  /// Replaces what `to` names, in one instant.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void make_folder(const std::filesystem::path& path) = 0;
  /// Returns when the folder's entries, as they are now, lie on the disk.
  virtual void sync_folder(const std::filesystem::path& path) = 0;
  /// Makes `path` a symbolic link to `target`, a path from the link's folder on.
  virtual void make_link(const std::filesystem::path& target, const std::filesystem::path& path) = 0;
  virtual std::filesystem::path read_link(const std::filesystem::path& path) = 0;
  /// A file, or a link itself.
  virtual void remove_file(const std::filesystem::path& path) = 0;
  /// An empty folder.
  virtual void remove_folder(const std::filesystem::path& path) = 0;
  /// The names in a folder, in no order.
  virtual std::vector<std::string> list(const std::filesystem::path& path) = 0;
  /// Whether something of this name is there: a file, a folder, a link that may lead nowhere.
  virtual bool exists(const std::filesystem::path& path) = 0;
  /// How many bytes this user may still write into a folder; the largest number where nobody knows.
  virtual std::uint64_t room_in(const std::filesystem::path& path) = 0;
};

/// The machine's own.
class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const std::filesystem::path& path) override;
  std::unique_ptr<InputFile> open(const std::filesystem::path& path) override;
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void make_folder(const std::filesystem::path& path) override;
  void sync_folder(const std::filesystem::path& path) override;
  void make_link(const std::filesystem::path& target, const std::filesystem::path& path) override;
  std::filesystem::path read_link(const std::filesystem::path& path) override;
  void remove_file(const std::filesystem::path& path) override;
  void remove_folder(const std::filesystem::path& path) override;
  std::vector<std::string> list(const std::filesystem::path& path) override;
  bool exists(const std::filesystem::path& path) override;
  std::uint64_t room_in(const std::filesystem::path& path) override;
};

}  // namespace gradring::train
