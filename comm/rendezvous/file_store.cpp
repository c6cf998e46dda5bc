// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/file_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>

#include "comm/error.h"
#include "comm/rendezvous/entry.h"
#include "comm/unique_fd.h"

namespace gradring::comm {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kFirstNap(1);
constexpr std::chrono::milliseconds kLongestNap(20);

[[noreturn]] void throw_failed(const std::string& what, const fs::path& path) {
  throw CommError({.operation = "store"}, fmt::format("the store cannot {} {}: {}", what, path.string(),
                                                      std::generic_category().message(errno)));
}

/// Letters, digits and a few others stand for themselves; the rest is %XX, so that no key can leave the directory.
std::string file_name(const std::string& key) {
  std::string name = "key-";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    plain ? name += c : name += fmt::format("%{:02x}", byte);
  }
  return name;
}

/// Empty if there is no such file.
std::optional<std::string> read(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  std::string value(Store::kMaxValueBytes, '\0');
  const ssize_t length = ::read(file.get(), value.data(), value.size());
  if (length < 0) throw_failed("read", path);
  value.resize(static_cast<std::size_t>(length));
  return value;
}

}  // namespace

FileStore::FileStore(fs::path directory) : directory_(std::move(directory)) {
  struct stat status {};
  const bool made = ::mkdir(directory_.c_str(), 0700) == 0;
  const bool usable = made || (::stat(directory_.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  check(usable, fmt::format("{} cannot be the directory of a store: its parent must exist", directory_.string()));
}

fs::path FileStore::path_of(const std::string& key) const { return directory_ / file_name(key); }

void FileStore::set(const std::string& key, const std::string& value) {
  check_entry(key, value);
  write(key, value);
}

void FileStore::write(const std::string& key, const std::string& value) const {
  std::string draft = (directory_ / "draft-XXXXXX").string();
  const UniqueFd file(::mkostemp(draft.data(), O_CLOEXEC));
  if (!file) throw_failed("write in", directory_);
  const bool written = ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
  if (written && ::rename(draft.c_str(), path_of(key).c_str()) == 0) return;
  const int cause = errno;
  ::unlink(draft.c_str());
  errno = cause;
  throw_failed("write", path_of(key));
}

std::string FileStore::wait(const std::string& key, Deadline deadline) {
  check_key(key);
  const auto began = Deadline::Clock::now();
  std::chrono::nanoseconds nap = kFirstNap;
  for (;;) {
    if (auto value = read(path_of(key))) return *value;
    if (deadline.passed()) throw_missing(key, began);
    std::this_thread::sleep_for(std::min(nap, deadline.remaining()));
    nap = std::min<std::chrono::nanoseconds>(2 * nap, kLongestNap);
  }
}

std::string FileStore::get(const std::string& key) {
  check_key(key);
  if (auto value = read(path_of(key))) return *value;
  throw_unset(key);
}

std::int64_t FileStore::add(const std::string& key, std::int64_t increment) {
  check_key(key);
  const fs::path path = directory_ / "lock";
  const UniqueFd lock(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  // Held for as long as a read and a write of a few bytes take; the system gives it back if the holder dies.
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) throw_failed("lock", path);
  const std::int64_t sum = sum_of(key, read(path_of(key)).value_or("0"), increment);
  write(key, std::to_string(sum));
  return sum;
}

}  // namespace gradring::comm
