// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/shared_memory/memfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "kernels/runtime/error.h"

namespace gradring::comm {
namespace {

std::string reason() { return std::generic_category().message(errno); }

/// A whole number of pages, at least one.
std::size_t in_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

std::byte* map_pages(int fd, std::size_t offset, std::size_t bytes, int flags = 0) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED)
    throw DeviceError(fmt::format("{} bytes of shared memory cannot be mapped: {}", bytes, reason()));
  return static_cast<std::byte*>(memory);
}

}  // namespace

Memfd Memfd::create() {
  UniqueFd fd(::memfd_create("gradring", MFD_CLOEXEC));
  if (!fd) throw DeviceError("the system gives no memfd: " + reason());
  return Memfd(std::move(fd));
}

Memfd Memfd::open(int pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened)
    throw DeviceError(
        fmt::format("the shared memory {} of a rank cannot be opened: {}; ranks on one host must run as one user "
                    "and see each other in /proc",
                    path, reason()));
  return Memfd(std::move(opened));
}

std::size_t Memfd::size() const {
  struct stat status {};
  if (::fstat(fd(), &status) != 0) throw DeviceError("the size of a memfd cannot be read: " + reason());
  return static_cast<std::size_t>(status.st_size);
}

std::size_t Memfd::grow(std::size_t bytes) {
  const std::size_t offset = size();  // whole pages, for it only ever grows by those
  // Takes the memory now: later the lack of it would be a SIGBUS.
  int failed = 0;
  do {
    failed = ::fallocate(fd(), 0, static_cast<off_t>(offset), static_cast<off_t>(in_pages(bytes)));
  } while (failed != 0 && errno == EINTR);  // any signal breaks it off, and nothing is taken then
  if (failed != 0)
    throw DeviceError(
        fmt::format("no {} bytes of shared memory left: {}; use smaller buckets or fewer ranks", bytes, reason()));
  return offset;
}

Memfd::Mapping Memfd::map(std::size_t offset, std::size_t bytes) const {
  const std::size_t length = in_pages(bytes);
  return {map_pages(fd(), offset, length), [length](std::byte* memory) { ::munmap(memory, length); }};
}

Memfd::Mapping Memfd::map_and_release(std::size_t offset, std::size_t bytes) const {
  const std::size_t length = in_pages(bytes);
  // Populated, so that the first step does not stop at every page.
  return {map_pages(fd(), offset, length, MAP_POPULATE), [length, offset, file = fd_](std::byte* memory) {
            ::munmap(memory, length);
            ::fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                        static_cast<off_t>(length));
          }};
}

}  // namespace gradring::comm
