// SPDX-License-Identifier: Apache-2.0
// The C library's calls on files, each of which may fail as plan.h says. Loaded by LD_PRELOAD.
// Not covered: what the C library calls inside itself (realpath's look at each folder, the reads and writes of a FILE).
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/file_faults/plan.h"

namespace {

using gradring::tests::FileFault;
using gradring::tests::next_fault_at;
using gradring::tests::next_fault_of;
using gradring::tests::record_end;
using gradring::tests::run_command;
using Kind = FileFault::Kind;

/// The C library's function of that name.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

template <class Call>
auto with(const FileFault& fault, decltype(std::declval<Call>()()) failure, Call call) {
  if (fault.kind == Kind::kill_before) ::kill(::getpid(), SIGKILL);
  if (fault.kind == Kind::command) run_command();
  if (fault.kind == Kind::error) {
    errno = fault.error;
    return failure;
  }
  const auto result = call();
  record_end(fault, result == failure ? "failed" : "ok");
  if (fault.kind == Kind::kill_after) ::kill(::getpid(), SIGKILL);
  return result;
}

/// For what takes place whatever it returns.
template <class Call>
int closed_with(FileFault fault, Call call) {
  const bool fails = fault.kind == Kind::error;
  if (fails) fault.kind = Kind::none;
  const int result = with(fault, -1, call);
  if (!fails) return result;
  errno = fault.error;
  return -1;
}

std::size_t shortened(const FileFault& fault, std::size_t count) {
  return fault.kind == Kind::half && count > 1 ? count / 2 : count;
}

const char* opening(int flags) { return (flags & O_CREAT) != 0 ? "create" : "open"; }

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

template <class Function>
int open_at(Function* function, int at, const char* path, int flags, mode_t mode) {
  return with(next_fault_at(opening(flags), at, path), -1, [&] { return function(at, path, flags, mode); });
}

std::FILE* open_stream(const char* function, const char* path, const char* mode) {
  const auto next = real<std::FILE*(const char*, const char*)>(function);
  const char* const operation = *mode == 'r' ? "open" : "create";
  return with(next_fault_at(operation, AT_FDCWD, path), nullptr, [&] { return next(path, mode); });
}

}  // namespace

extern "C" {

int openat(int at, const char* path, int flags, ...) {
  static const auto next = real<int(int, const char*, int, ...)>("openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(next, at, path, flags, mode);
}

int open(const char* path, int flags, ...) {
  static const auto next = real<int(int, const char*, int, ...)>("openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = has_mode(flags) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(next, AT_FDCWD, path, flags, mode);
}

int openat64(int, const char*, int, ...) __attribute__((alias("openat")));
int open64(const char*, int, ...) __attribute__((alias("open")));
int creat(const char* path, mode_t mode) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

std::FILE* fopen(const char* path, const char* mode) { return open_stream("fopen", path, mode); }
std::FILE* fopen64(const char* path, const char* mode) { return open_stream("fopen64", path, mode); }

int fclose(std::FILE* file) {
  static const auto next = real<int(std::FILE*)>("fclose");
  return closed_with(next_fault_of("close", ::fileno(file)), [&] { return next(file); });
}

int close(int fd) {
  static const auto next = real<int(int)>("close");
  return closed_with(next_fault_of("close", fd), [&] { return next(fd); });
}

ssize_t read(int fd, void* out, size_t count) {
  static const auto next = real<ssize_t(int, void*, size_t)>("read");
  const FileFault fault = next_fault_of("read", fd);
  return with(fault, -1, [&] { return next(fd, out, shortened(fault, count)); });
}

ssize_t pread(int fd, void* out, size_t count, off_t offset) {
  static const auto next = real<ssize_t(int, void*, size_t, off_t)>("pread");
  const FileFault fault = next_fault_of("pread", fd);
  return with(fault, -1, [&] { return next(fd, out, shortened(fault, count), offset); });
}

ssize_t pread64(int fd, void* out, size_t count, off64_t offset) { return pread(fd, out, count, offset); }

ssize_t readv(int fd, const iovec* out, int count) {
  static const auto next = real<ssize_t(int, const iovec*, int)>("readv");
  return with(next_fault_of("readv", fd), -1, [&] { return next(fd, out, count); });
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static const auto next = real<ssize_t(int, const void*, size_t)>("write");
  const FileFault fault = next_fault_of("write", fd);
  return with(fault, -1, [&] { return next(fd, bytes, shortened(fault, count)); });
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  static const auto next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  const FileFault fault = next_fault_of("pwrite", fd);
  return with(fault, -1, [&] { return next(fd, bytes, shortened(fault, count), offset); });
}

ssize_t pwrite64(int fd, const void* bytes, size_t count, off64_t offset) { return pwrite(fd, bytes, count, offset); }

/// Half of several pieces: the first alone.
ssize_t writev(int fd, const iovec* bytes, int count) {
  static const auto next = real<ssize_t(int, const iovec*, int)>("writev");
  const FileFault fault = next_fault_of("writev", fd);
  return with(fault, -1, [&] { return next(fd, bytes, fault.kind == Kind::half ? 1 : count); });
}

ssize_t sendfile(int out, int in, off_t* offset, size_t count) noexcept {
  static const auto next = real<ssize_t(int, int, off_t*, size_t)>("sendfile");
  const FileFault fault = next_fault_of("write", out);
  return with(fault, -1, [&] { return next(out, in, offset, shortened(fault, count)); });
}

ssize_t copy_file_range(int in, off64_t* in_offset, int out, off64_t* out_offset, size_t count, unsigned flags) {
  static const auto next = real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)>("copy_file_range");
  const FileFault fault = next_fault_of("write", out);
  return with(fault, -1, [&] { return next(in, in_offset, out, out_offset, shortened(fault, count), flags); });
}

int fsync(int fd) {
  static const auto next = real<int(int)>("fsync");
  static const auto facts_of = real<int(int, struct stat*)>("fstat");
  FileFault fault = next_fault_of("fsync", fd);
  struct stat facts {};
  if (!fault.record.empty() && facts_of(fd, &facts) == 0) fault.record += " " + std::to_string(facts.st_size);
  return with(fault, -1, [&] { return next(fd); });
}

int fdatasync(int fd) {
  static const auto next = real<int(int)>("fdatasync");
  return with(next_fault_of("fdatasync", fd), -1, [&] { return next(fd); });
}

int ftruncate(int fd, off_t length) noexcept {
  static const auto next = real<int(int, off_t)>("ftruncate");
  return with(next_fault_of("ftruncate", fd), -1, [&] { return next(fd, length); });
}

int ftruncate64(int fd, off64_t length) noexcept { return ftruncate(fd, length); }

int truncate(const char* path, off_t length) noexcept {
  static const auto next = real<int(const char*, off_t)>("truncate");
  return with(next_fault_at("truncate", AT_FDCWD, path), -1, [&] { return next(path, length); });
}

int truncate64(const char* path, off64_t length) noexcept { return truncate(path, length); }

int flock(int fd, int operation) noexcept {
  static const auto next = real<int(int, int)>("flock");
  return with(next_fault_of("flock", fd), -1, [&] { return next(fd, operation); });
}

void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  static const auto next = real<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (fd < 0) return next(at, length, protection, flags, fd, offset);
  return with(next_fault_of("mmap", fd), MAP_FAILED, [&] { return next(at, length, protection, flags, fd, offset); });
}

void* mmap64(void* at, size_t length, int protection, int flags, int fd, off64_t offset) noexcept {
  return mmap(at, length, protection, flags, fd, offset);
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("rename");
  return with(next_fault_at("rename", AT_FDCWD, to), -1, [&] { return next(from, to); });
}

int renameat(int at, const char* from, int to_at, const char* to) noexcept {
  static const auto next = real<int(int, const char*, int, const char*)>("renameat");
  return with(next_fault_at("rename", to_at, to), -1, [&] { return next(at, from, to_at, to); });
}

int renameat2(int at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static const auto next = real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return with(next_fault_at("rename", to_at, to), -1, [&] { return next(at, from, to_at, to, flags); });
}

int link(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("link");
  return with(next_fault_at("link", AT_FDCWD, to), -1, [&] { return next(from, to); });
}

int symlink(const char* target, const char* path) noexcept {
  static const auto next = real<int(const char*, const char*)>("symlink");
  return with(next_fault_at("symlink", AT_FDCWD, path), -1, [&] { return next(target, path); });
}

int symlinkat(const char* target, int at, const char* path) noexcept {
  static const auto next = real<int(const char*, int, const char*)>("symlinkat");
  return with(next_fault_at("symlink", at, path), -1, [&] { return next(target, at, path); });
}

ssize_t readlink(const char* path, char* out, size_t bytes) noexcept {
  static const auto next = real<ssize_t(const char*, char*, size_t)>("readlink");
  return with(next_fault_at("readlink", AT_FDCWD, path), -1, [&] { return next(path, out, bytes); });
}

ssize_t readlinkat(int at, const char* path, char* out, size_t bytes) noexcept {
  static const auto next = real<ssize_t(int, const char*, char*, size_t)>("readlinkat");
  return with(next_fault_at("readlink", at, path), -1, [&] { return next(at, path, out, bytes); });
}

int unlink(const char* path) noexcept {
  static const auto next = real<int(const char*)>("unlink");
  return with(next_fault_at("unlink", AT_FDCWD, path), -1, [&] { return next(path); });
}

int unlinkat(int at, const char* path, int flags) noexcept {
  static const auto next = real<int(int, const char*, int)>("unlinkat");
  return with(next_fault_at("unlink", at, path), -1, [&] { return next(at, path, flags); });
}

int rmdir(const char* path) noexcept {
  static const auto next = real<int(const char*)>("rmdir");
  return with(next_fault_at("unlink", AT_FDCWD, path), -1, [&] { return next(path); });
}

int remove(const char* path) noexcept {
  static const auto next = real<int(const char*)>("remove");
  return with(next_fault_at("unlink", AT_FDCWD, path), -1, [&] { return next(path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = real<int(const char*, mode_t)>("mkdir");
  return with(next_fault_at("mkdir", AT_FDCWD, path), -1, [&] { return next(path, mode); });
}

int mkdirat(int at, const char* path, mode_t mode) noexcept {
  static const auto next = real<int(int, const char*, mode_t)>("mkdirat");
  return with(next_fault_at("mkdir", at, path), -1, [&] { return next(at, path, mode); });
}

char* mkdtemp(char* name) noexcept {
  static const auto next = real<char*(char*)>("mkdtemp");
  return with(next_fault_at("mkdtemp", AT_FDCWD, name), nullptr, [&] { return next(name); });
}

int mkostemp(char* name, int flags) {
  static const auto next = real<int(char*, int)>("mkostemp");
  return with(next_fault_at("mkstemp", AT_FDCWD, name), -1, [&] { return next(name, flags); });
}

int mkostemp64(char* name, int flags) { return mkostemp(name, flags); }

DIR* opendir(const char* path) {
  static const auto next = real<DIR*(const char*)>("opendir");
  return with(next_fault_at("opendir", AT_FDCWD, path), nullptr, [&] { return next(path); });
}

dirent* readdir(DIR* folder) {
  static const auto next = real<dirent*(DIR*)>("readdir");
  return with(next_fault_of("readdir", ::dirfd(folder)), nullptr, [&] { return next(folder); });
}

dirent64* readdir64(DIR* folder) {
  static const auto next = real<dirent64*(DIR*)>("readdir64");
  return with(next_fault_of("readdir", ::dirfd(folder)), nullptr, [&] { return next(folder); });
}

int stat(const char* path, struct stat* facts) noexcept {
  static const auto next = real<int(const char*, struct stat*)>("stat");
  return with(next_fault_at("stat", AT_FDCWD, path), -1, [&] { return next(path, facts); });
}

int lstat(const char* path, struct stat* facts) noexcept {
  static const auto next = real<int(const char*, struct stat*)>("lstat");
  return with(next_fault_at("stat", AT_FDCWD, path), -1, [&] { return next(path, facts); });
}

int fstat(int fd, struct stat* facts) noexcept {
  static const auto next = real<int(int, struct stat*)>("fstat");
  return with(next_fault_of("stat", fd), -1, [&] { return next(fd, facts); });
}

int fstatat(int at, const char* path, struct stat* facts, int flags) noexcept {
  static const auto next = real<int(int, const char*, struct stat*, int)>("fstatat");
  return with(next_fault_at("stat", at, path), -1, [&] { return next(at, path, facts, flags); });
}

int stat64(const char* path, struct stat64* facts) noexcept {
  return stat(path, reinterpret_cast<struct stat*>(facts));
}

int lstat64(const char* path, struct stat64* facts) noexcept {
  return lstat(path, reinterpret_cast<struct stat*>(facts));
}

int fstat64(int fd, struct stat64* facts) noexcept { return fstat(fd, reinterpret_cast<struct stat*>(facts)); }

int statx(int at, const char* path, int flags, unsigned mask, struct statx* facts) noexcept {
  static const auto next = real<int(int, const char*, int, unsigned, struct statx*)>("statx");
  return with(next_fault_at("stat", at, path), -1, [&] { return next(at, path, flags, mask, facts); });
}

int access(const char* path, int mode) noexcept {
  static const auto next = real<int(const char*, int)>("access");
  return with(next_fault_at("stat", AT_FDCWD, path), -1, [&] { return next(path, mode); });
}

int statvfs(const char* path, struct statvfs* facts) noexcept {
  static const auto next = real<int(const char*, struct statvfs*)>("statvfs");
  return with(next_fault_at("statvfs", AT_FDCWD, path), -1, [&] { return next(path, facts); });
}

int fstatvfs(int fd, struct statvfs* facts) noexcept {
  static const auto next = real<int(int, struct statvfs*)>("fstatvfs");
  return with(next_fault_of("statvfs", fd), -1, [&] { return next(fd, facts); });
}

int fstatvfs64(int fd, struct statvfs64* facts) noexcept {
  return fstatvfs(fd, reinterpret_cast<struct statvfs*>(facts));
}

DIR* fdopendir(int fd) {
  static const auto next = real<DIR*(int)>("fdopendir");
  return with(next_fault_of("opendir", fd), nullptr, [&] { return next(fd); });
}

int statvfs64(const char* path, struct statvfs64* facts) noexcept {
  return statvfs(path, reinterpret_cast<struct statvfs*>(facts));
}

}  // extern "C"
