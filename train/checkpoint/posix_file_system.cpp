// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <limits>

#include "kernels/runtime/unique_fd.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/file_system.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// What a call returned, once no signal interrupted it; throws on -1.
template <class Call>
auto checked(const char* operation, const fs::path& path, Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  if (result < 0) throw FileError(operation, path, errno);
  return result;
}

class PosixInputFile final : public InputFile {
 public:
  explicit PosixInputFile(const fs::path& path)
      : path_(path), fd_(checked("open", path, [&] {
          return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        })) {
    struct stat found {};
    checked("look at", path_, [&] { return ::fstat(fd_.get(), &found); });
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
  explicit PosixOutputFile(const fs::path& path)
      : path_(path), fd_(checked("create", path, [&] {
          return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        })) {}
  ~PosixOutputFile() override {
    if (fd_ >= 0) ::close(fd_);
  }
  PosixOutputFile(const PosixOutputFile&) = delete;
  PosixOutputFile& operator=(const PosixOutputFile&) = delete;

  std::size_t write(std::span<const std::byte> bytes) override {
    return static_cast<std::size_t>(checked("write", path_, [&] { return ::write(fd_, bytes.data(), bytes.size()); }));
  }

  void sync() override {
    checked("write to the disk", path_, [&] { return ::fsync(fd_); });
  }

  /// Not tried again when interrupted: on Linux the descriptor is gone either way.
  void close() override {
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) throw FileError("close", path_, errno);
  }

 private:
  fs::path path_;
  int fd_;
};

}  // namespace

std::unique_ptr<OutputFile> PosixFileSystem::create(const fs::path& path) {
  return std::make_unique<PosixOutputFile>(path);
}

std::unique_ptr<InputFile> PosixFileSystem::open(const fs::path& path) {
  return std::make_unique<PosixInputFile>(path);
}

void PosixFileSystem::rename(const fs::path& from, const fs::path& to) {
  checked("rename", from, [&] { return ::rename(from.c_str(), to.c_str()); });
}

void PosixFileSystem::make_folder(const fs::path& path) {
  checked("make the folder", path, [&] { return ::mkdir(path.c_str(), 0755); });
}

void PosixFileSystem::sync_folder(const fs::path& path) {
  const UniqueFd fd(checked("open", path, [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  checked("write to the disk", path, [&] { return ::fsync(fd.get()); });
}

void PosixFileSystem::make_link(const fs::path& target, const fs::path& path) {
  checked("make the link", path, [&] { return ::symlink(target.c_str(), path.c_str()); });
}

fs::path PosixFileSystem::read_link(const fs::path& path) {
  std::array<char, PATH_MAX> target{};
  const auto length =
      checked("read the link", path, [&] { return ::readlink(path.c_str(), target.data(), target.size()); });
  return std::string(target.data(), static_cast<std::size_t>(length));
}

void PosixFileSystem::remove_file(const fs::path& path) {
  checked("remove", path, [&] { return ::unlink(path.c_str()); });
}

void PosixFileSystem::remove_folder(const fs::path& path) {
  checked("remove", path, [&] { return ::rmdir(path.c_str()); });
}

std::vector<std::string> PosixFileSystem::list(const fs::path& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) throw FileError("list", path, error.value());
  return names;
}

bool PosixFileSystem::exists(const fs::path& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw FileError("look at", path, errno);
}

std::uint64_t PosixFileSystem::room_in(const fs::path& path) {
  struct statvfs found {};
  if (::statvfs(path.c_str(), &found) != 0) throw FileError("look for room in", path, errno);
  if (found.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();  // a file system that does not count
  return static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
}

}  // namespace gradring::train
