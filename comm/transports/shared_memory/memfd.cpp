// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/shared_memory/memfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <system_error>

#include "kernels/base/available_memory.h"
#include "kernels/base/error.h"

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
  if (memory == MAP_FAILED) throw DeviceError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, reason()));
  return static_cast<std::byte*>(memory);
}

/// fallocate. Returns 0 or errno.
int change_range(int fd, int mode, std::size_t offset, std::size_t length) {
  int failed = 0;
  do {
    failed = ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (failed != 0 && errno == EINTR);  // a signal interrupts it, and then nothing has changed
  return failed == 0 ? 0 : errno;
}

}  // namespace

Memfd Memfd::create() {
  UniqueFd fd(::memfd_create("gradring", MFD_CLOEXEC));
  if (!fd) throw DeviceError("cannot create shared memory (memfd_create): " + reason());
  return Memfd(std::move(fd));
}

Memfd Memfd::open(int pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened)
    throw DeviceError(fmt::format(
        "cannot open a rank's shared memory {}: {}; run all ranks of a host as one user, in one process namespace",
        path, reason()));
  return Memfd(std::move(opened));
}

std::size_t Memfd::size() const {
  struct stat status {};
  if (::fstat(fd(), &status) != 0) throw DeviceError("cannot read the size of shared memory (fstat): " + reason());
  return static_cast<std::size_t>(status.st_size);
}

std::size_t Memfd::allocate(std::size_t bytes) {
  const std::size_t length = in_pages(bytes);
  const std::lock_guard lock(file_->mutex);
  auto& released = file_->released;
  const auto range = std::ranges::find_if(released, [&](const auto& found) { return found.second >= length; });
  const std::size_t offset = range == released.end() ? size() : range->first;  // both multiples of the page size
  // No limit of a process bounds a memfd but that of file sizes: the kernel would end other processes first.
  if (const std::string lack = lack_of_memory(length); !lack.empty())
    throw DeviceError("cannot allocate shared memory of " + lack +
                      "; use a smaller model, smaller buckets or fewer ranks");
  // Allocates the memory now: without it, a later access would raise SIGBUS.
  if (const int error = change_range(fd(), 0, offset, length); error != 0) {
    const char* advice =
        error == EFBIG ? "raise the limit of file sizes (ulimit -f)" : "use smaller buckets or fewer ranks";
    throw DeviceError(fmt::format("cannot allocate {} bytes of shared memory: {}; {}", bytes,
                                  std::generic_category().message(error), advice));
  }
  if (range != released.end()) {
    if (range->second > length) released.emplace(offset + length, range->second - length);
    released.erase(range);
  }
  return offset;
}

/// Returns the pages to the system. A range that it could not zero is lost, as is one that cannot be recorded.
void Memfd::release(File& file, std::size_t offset, std::size_t length) noexcept try {
  if (change_range(file.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) != 0) return;
  const std::lock_guard lock(file.mutex);
  const auto next = file.released.emplace(offset, length).first;
  const auto join = [&](auto range, auto behind) {
    if (range->first + range->second != behind->first) return range;
    range->second += behind->second;
    file.released.erase(behind);
    return range;
  };
  auto range = next;
  if (std::next(range) != file.released.end()) range = join(range, std::next(range));
  if (range != file.released.begin()) join(std::prev(range), range);
} catch (const std::bad_alloc&) {
}

Memfd::Mapping Memfd::map(std::size_t offset, std::size_t bytes) const {
  const std::size_t length = in_pages(bytes);
  return {map_pages(fd(), offset, length), [length](std::byte* memory) { ::munmap(memory, length); }};
}

Memfd::Mapping Memfd::map_and_release(std::size_t offset, std::size_t bytes) const {
  const std::size_t length = in_pages(bytes);
  // Populated, so that the first step has no page faults.
  return {map_pages(fd(), offset, length, MAP_POPULATE), [length, offset, file = file_](std::byte* memory) {
            ::munmap(memory, length);
            release(*file, offset, length);
          }};
}

}  // namespace gradring::comm
