// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/directory.h"

namespace gradring::train {

/// Bytes with random access: an open file, or memory. Closed on destruction.
class InputFile {
 public:
  virtual ~InputFile() = default;
  /// The size when the file was opened.
  virtual std::uint64_t size() const = 0;
  /// Reads at `offset` into the front of `out`; may read less. Returns 0 only at the end, or for an empty `out`.
  ///
  /// Errors    FileError.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// A new file, written from front to end. Closed on destruction; only close() reports errors of closing.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  /// Writes a prefix of `bytes`; returns its size.
  ///
  /// Errors    FileError.
  virtual std::size_t write(std::span<const std::byte> bytes) = 0;
  /// fsync.
  virtual void sync() = 0;
  virtual void close() = 0;
};

/// The system calls that save and find checkpoints, one method each, so that a test can make any one of them fail.
///
/// Errors    FileError from every method, with the operation, the path and errno; nothing has happened then.
/// Threads   any.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Fails with EEXIST if `path` exists.
  virtual std::unique_ptr<OutputFile> create(const std::filesystem::path& path) = 0;
  /// Opens a regular file. Never blocks on a FIFO; anything but a regular file gives EISDIR, EINVAL or ENXIO.
  virtual std::unique_ptr<InputFile> open(const std::filesystem::path& path) = 0;
  /// Replaces `to` atomically.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual void make_folder(const std::filesystem::path& path) = 0;
  /// fsync of the folder's entries, where the file system can.
  virtual void sync_folder(const std::filesystem::path& path) = 0;
  /// Makes `path` a symbolic link to `target`, which is relative to the link's folder.
  virtual void make_link(const std::filesystem::path& target, const std::filesystem::path& path) = 0;
  virtual std::filesystem::path read_link(const std::filesystem::path& path) = 0;
  /// Removes a file, or a link itself.
  virtual void remove_file(const std::filesystem::path& path) = 0;
  /// Removes an empty folder.
  virtual void remove_folder(const std::filesystem::path& path) = 0;
  /// The names in a folder, in no order.
  virtual std::vector<std::string> list(const std::filesystem::path& path) = 0;
  /// Whether `path` names a file, a folder or a link, even a dangling one.
  virtual bool exists(const std::filesystem::path& path) = 0;
  /// How many bytes this user may still write into a folder; the largest number if unknown.
  virtual std::uint64_t free_bytes(const std::filesystem::path& path) = 0;
};

/// The files of this machine. With a directory, paths that begin with its path name files in it, wherever it is moved;
/// it must outlive the object. New files and folders have the modes of kernels/base/directory.h.
class PosixFileSystem final : public FileSystem {
 public:
  PosixFileSystem() = default;
  explicit PosixFileSystem(const Directory& directory) : directory_(&directory) {}

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
  std::uint64_t free_bytes(const std::filesystem::path& path) override;

 private:
  FileAt at(const std::filesystem::path& path) const { return directory_ ? directory_->at(path) : FileAt(path); }

  const Directory* directory_ = nullptr;  // null: none
};

/// Bytes in memory, read as a file. Does not own them.
class MemoryFile final : public InputFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::span<const std::byte> bytes_;
};

/// Writes all of `bytes`.
///
/// Errors    FileError; a write of 0 bytes counts as EIO.
void write_all(OutputFile& file, const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Writes `text` to a new file and syncs it.
///
/// Errors    FileError; part of the file may exist.
void write_new_file(FileSystem& files, const std::filesystem::path& path, std::string_view text);

/// Lets `write` write a new file of another name beside `path`, and renames it: `path` is never incomplete.
///
/// Errors    what `write` throws; FileError. Then there is no new file.
void write_whole(FileSystem& files, const std::filesystem::path& path,
                 const std::function<void(const std::filesystem::path&)>& write);

/// Opens a file of a checkpoint.
///
/// Errors    CheckpointError if it is missing or not a regular file. FileError for any other reason, which says nothing
///           about its content.
std::unique_ptr<InputFile> open_to_read(FileSystem& files, const std::filesystem::path& path);

/// Fills `out` with the bytes at `offset`.
///
/// Errors    CheckpointError if the file ends before; FileError if a read fails.
void read_exactly(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                  std::span<std::byte> out);

/// As read_exactly, into a string.
std::string read_text(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                      std::size_t bytes);

/// The bytes at `offset` of a file.
///
/// Errors    MemoryError if they need more memory than is available: a header may lie, and a file may be sparse;
///           CheckpointError if the file ends before; FileError if a read fails.
std::vector<std::byte> read_bytes(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                                  std::uint64_t bytes);

/// Errors    MemoryError unless `bytes` of memory may be allocated for the contents of a file.
void require_memory(const std::filesystem::path& path, std::uint64_t bytes);

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The number at `offset` of `text`, which holds all its bytes.
template <std::unsigned_integral T>
T get_little_endian(std::string_view text, std::size_t offset) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    value = static_cast<T>(static_cast<T>(value << 8) | static_cast<unsigned char>(text.substr(offset)[i]));
  return value;
}

template <std::unsigned_integral T>
void put_little_endian(std::string& text, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace gradring::train
