// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/file_io.h"

#include <cerrno>

#include "train/checkpoint/error.h"

namespace gradring::train {

namespace fs = std::filesystem;

namespace {

/// What is wrong with the file itself, if that is why it was not opened.
std::string_view defect_of(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR: return "is missing";
    case EISDIR:
    case EINVAL:
    case ENXIO:  // a socket
    case ELOOP: return "is not a regular file";
    default: return "";
  }
}

}  // namespace

void write_all(OutputFile& file, const fs::path& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t written = file.write(bytes);
    if (written == 0) throw FileError("write", path, EIO);
    bytes = bytes.subspan(written);
  }
}

void write_new_file(FileSystem& files, const fs::path& path, std::string_view text) {
  const auto file = files.create(path);
  write_all(*file, path, bytes_of(text));
  file->sync();
  file->close();
}

std::unique_ptr<InputFile> open_to_read(FileSystem& files, const fs::path& path) {
  try {
    return files.open(path);
  } catch (const FileError& error) {
    const std::string_view defect = defect_of(error.code());
    if (defect.empty()) throw;
    throw CheckpointError(path, defect, "restore it, or choose another");
  }
}

void read_exactly(const InputFile& file, const fs::path& path, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t got = file.read_at(offset, out);
    if (got == 0)
      throw CheckpointError(path, "ends at byte " + std::to_string(offset) + ", before what it promises",
                            "it was cut short: take another checkpoint");
    offset += got;
    out = out.subspan(got);
  }
}

std::string read_text(const InputFile& file, const fs::path& path, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  read_exactly(file, path, offset, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace gradring::train
