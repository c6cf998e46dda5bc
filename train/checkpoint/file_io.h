// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "train/checkpoint/file_system.h"

namespace gradring::train {

/// Writes all of `bytes`, in as many calls as it takes.
///
/// Errors    FileError; a file that takes nothing any more counts as EIO.
void write_all(OutputFile& file, const std::filesystem::path& path, std::span<const std::byte> bytes);

/// A new file that holds `text`, on the disk when this returns.
///
/// Errors    FileError; the file may be there in part.
void write_new_file(FileSystem& files, const std::filesystem::path& path, std::string_view text);

/// Opens a file that is to be read as a part of a checkpoint.
///
/// Errors    CheckpointError if it is missing or no regular file; FileError if it could not be opened for another reason,
///           which says nothing about what it holds.
std::unique_ptr<InputFile> open_to_read(FileSystem& files, const std::filesystem::path& path);

/// Fills `out` with the bytes at `offset`.
///
/// Errors    CheckpointError if the file ends before; FileError if it could not be read.
void read_exactly(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                  std::span<std::byte> out);

/// The bytes of one place of a file as text.
///
/// Errors    as read_exactly.
std::string read_text(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                      std::size_t bytes);

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace gradring::train
