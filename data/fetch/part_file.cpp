// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "data/fetch/error.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw DiskError(path, std::string("cannot be ") + what + " (" + std::generic_category().message(errno) + ")");
}

fs::path part_of(const fs::path& target) {
  fs::path path = target;
  return path += ".part";
}

/// Whether `path` still leads to the file that was opened: who had it locked before may have published or removed it.
bool is_still_there(const fs::path& path, const struct stat& opened) {
  struct stat now {};
  return ::stat(path.c_str(), &now) == 0 && now.st_dev == opened.st_dev && now.st_ino == opened.st_ino;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DiskError(folder, "cannot be made (" + error.message() + ")");
}

/// So that the new name is on the disk, too. A system that cannot do this loses no more than the name.
void sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

}  // namespace

PartFile::PartFile(fs::path target) : target_(std::move(target)), path_(part_of(target_)) {
  make_folder(fs::absolute(target_).parent_path());
  fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd_) fail(path_, "written");
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw FetchError(path_.string() + " is being fetched by another process: wait for its end");
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail(path_, "read");
  if (!is_still_there(path_, status))
    throw FetchError(path_.string() + " was just fetched by another process: try again");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void PartFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
}

void PartFile::clear() {
  if (::ftruncate(fd_.get(), 0) != 0) fail(path_, "emptied");
  size_ = 0;
}

void PartFile::publish() {
  if (::fsync(fd_.get()) != 0) fail(path_, "written");
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "put in place");
  sync_folder(fs::absolute(target_).parent_path());
}

void PartFile::remove() {
  if (::unlink(path_.c_str()) != 0) fail(path_, "removed");
}

}  // namespace gradring::data
