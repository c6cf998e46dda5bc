// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <limits>

#include "kernels/base/available_memory.h"
#include "kernels/base/file.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Repeats `call` while a signal interrupts it; throws on -1.
template <class Call>
auto checked(const char* operation, const fs::path& path, Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  if (result < 0) throw FileError(operation, path, errno);
  return result;
}

/// The same for a descriptor.
UniqueFd opened(const char* operation, const FileAt& file, int flags) {
  UniqueFd fd;
  checked(operation, file.path(), [&] {
    fd = open_file(file, flags);
    return fd.get();
  });
  return fd;
}

class PosixInputFile final : public InputFile {
 public:
  explicit PosixInputFile(const FileAt& file)
      : path_(file.path()), fd_(opened("open", file, O_RDONLY | O_NONBLOCK | O_NOCTTY)) {
    struct stat found {};
    checked("stat", path_, [&] { return ::fstat(fd_.get(), &found); });
    if (!S_ISREG(found.st_mode)) throw FileError("read", path_, S_ISDIR(found.st_mode) ? EISDIR : EINVAL);
    size_ = static_cast<std::uint64_t>(found.st_size);
  }

  std::uint64_t size() const override { return size_; }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return static_cast<std::size_t>(
        checked("read", path_, [&] { return ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset)); }));
  }

 private:
  fs::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

class PosixOutputFile final : public OutputFile {
 public:
  explicit PosixOutputFile(const FileAt& file)
      : path_(file.path()), fd_(opened("create", file, O_WRONLY | O_CREAT | O_EXCL)) {}

  std::size_t write(std::span<const std::byte> bytes) override {
    return static_cast<std::size_t>(
        checked("write", path_, [&] { return ::write(fd_.get(), bytes.data(), bytes.size()); }));
  }

  void sync() override {
    checked("fsync", path_, [&] { return ::fsync(fd_.get()); });
  }

  /// Not repeated after EINTR: Linux has released the descriptor.
  void close() override {
    if (::close(fd_.release()) != 0 && errno != EINTR) throw FileError("close", path_, errno);
  }

 private:
  fs::path path_;
  UniqueFd fd_;
};

/// A name beside `path` that no file has: an existing one may be the user's.
fs::path new_name_beside(FileSystem& files, const fs::path& path) {
  fs::path name = path.string() + ".partial";
  for (int i = 2; files.exists(name); ++i) name = fmt::format("{}.partial{}", path.string(), i);
  return name;
}

}  // namespace

std::unique_ptr<OutputFile> PosixFileSystem::create(const fs::path& path) {
  return std::make_unique<PosixOutputFile>(at(path));
}

std::unique_ptr<InputFile> PosixFileSystem::open(const fs::path& path) {
  return std::make_unique<PosixInputFile>(at(path));
}

void PosixFileSystem::rename(const fs::path& from, const fs::path& to) {
  const FileAt old = at(from), renamed = at(to);
  checked("rename", from, [&] { return ::renameat(old.directory(), old.name(), renamed.directory(), renamed.name()); });
}

void PosixFileSystem::make_folder(const fs::path& path) {
  if (const int error = gradring::make_folder(at(path))) throw FileError("create the folder", path, error);
}

void PosixFileSystem::sync_folder(const fs::path& path) {
  const UniqueFd fd = opened("open", at(path), O_RDONLY | O_DIRECTORY);
  // EINVAL: CIFS before Linux 4.17, vboxsf, DrvFs and some of FUSE cannot sync folders.
  checked("fsync", path, [&] { return ::fsync(fd.get()) == 0 || errno == EINVAL ? 0 : -1; });
}

void PosixFileSystem::make_link(const fs::path& target, const fs::path& path) {
  const FileAt link = at(path);
  checked("create the link", path, [&] { return ::symlinkat(target.c_str(), link.directory(), link.name()); });
}

fs::path PosixFileSystem::read_link(const fs::path& path) {
  const FileAt link = at(path);
  std::array<char, PATH_MAX> target{};
  const auto length = checked(
      "read the link", path, [&] { return ::readlinkat(link.directory(), link.name(), target.data(), target.size()); });
  return std::string(target.data(), static_cast<std::size_t>(length));
}

void PosixFileSystem::remove_file(const fs::path& path) {
  const FileAt file = at(path);
  checked("remove", path, [&] { return ::unlinkat(file.directory(), file.name(), 0); });
}

void PosixFileSystem::remove_folder(const fs::path& path) {
  const FileAt folder = at(path);
  checked("remove", path, [&] { return ::unlinkat(folder.directory(), folder.name(), AT_REMOVEDIR); });
}

std::vector<std::string> PosixFileSystem::list(const fs::path& path) {
  int error = 0;
  std::vector<std::string> names = names_in(at(path), error);
  if (error != 0) throw FileError("list", path, error);
  return names;
}

bool PosixFileSystem::exists(const fs::path& path) {
  const FileAt file = at(path);
  struct stat found {};
  if (::fstatat(file.directory(), file.name(), &found, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw FileError("stat", path, errno);
}

std::uint64_t PosixFileSystem::free_bytes(const fs::path& path) {
  constexpr const char* kOperation = "get the free space of";
  const UniqueFd fd = opened(kOperation, at(path), O_PATH);
  struct statvfs found {};
  checked(kOperation, path, [&] { return ::fstatvfs(fd.get(), &found); });
  if (found.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();  // the file system does not report it
  return static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
}

std::size_t MemoryFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset >= bytes_.size()) return 0;
  const auto rest = bytes_.subspan(offset, std::min<std::size_t>(out.size(), bytes_.size() - offset));
  std::ranges::copy(rest, out.begin());
  return rest.size();
}

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

void write_whole(FileSystem& files, const fs::path& path, const std::function<void(const fs::path&)>& write) {
  const fs::path aside = new_name_beside(files, path);
  try {
    write(aside);
    files.rename(aside, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw;
  }
}

std::unique_ptr<InputFile> open_to_read(FileSystem& files, const fs::path& path) {
  try {
    return files.open(path);
  } catch (const FileError& error) {
    switch (error.code()) {
      case ENOENT:
      case ENOTDIR: throw CheckpointError(path, "is missing", "restore it, or choose another");
      case EISDIR:
      case EINVAL:
      case ENXIO:  // a socket
      case ELOOP: throw CheckpointError(path, "is not a regular file", "restore it, or choose another");
      default: throw;
    }
  }
}

void read_exactly(const InputFile& file, const fs::path& path, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t end = offset + out.size();
  while (!out.empty()) {
    const std::size_t got = file.read_at(offset, out);
    if (got == 0)
      throw CheckpointError(
          path, "is truncated: it ends at byte " + std::to_string(offset) + ", expected " + std::to_string(end),
          "use another checkpoint");
    offset += got;
    out = out.subspan(got);
  }
}

std::string read_text(const InputFile& file, const fs::path& path, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  read_exactly(file, path, offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<std::byte> read_bytes(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                                  std::uint64_t bytes) {
  require_memory(path, bytes);
  std::vector<std::byte> read(bytes);
  read_exactly(file, path, offset, read);
  return read;
}

void require_memory(const std::filesystem::path& path, std::uint64_t bytes) {
  if (const std::string lack = lack_of_memory(bytes); !lack.empty())
    throw MemoryError(path.string() + " needs " + lack +
                      "; check where the file is from; if it is right, free memory or use a machine with more");
}

}  // namespace gradring::train
