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

#include "comm/rendezvous/store.h"
#include "comm/transport/error.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm {
namespace {

namespace fs = std::filesystem;

constexpr PollPace kPace = {
    .spins = 0, .first_nap = std::chrono::milliseconds(1), .longest_nap = std::chrono::milliseconds(20)};
/// For another rank, which may start much later, while many wait on few cores.
constexpr PollPace kWaitPace = {
    .spins = 0, .first_nap = std::chrono::milliseconds(1), .longest_nap = std::chrono::milliseconds(80)};

[[noreturn]] void throw_failed(const std::string& what, const fs::path& path) {
  throw DeviceError(
      fmt::format("the store cannot {} {}: {}", what, path.string(), std::generic_category().message(errno)));
}

/// Keeps letters, digits, '-' and '_', and writes the rest as %xx, so that no key names a path outside the directory.
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
  if (!file) throw_failed("open", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_failed("read", path);
  std::string value(std::min(static_cast<std::size_t>(status.st_size), Store::kMaxValueBytes), '\0');
  const ssize_t length = ::read(file.get(), value.data(), value.size());
  if (length < 0) throw_failed("read", path);
  value.resize(static_cast<std::size_t>(length));
  return value;
}

}  // namespace

void write_entry(const fs::path& directory, const std::string& file_name, const std::string& value) {
  std::string draft = (directory / "draft-XXXXXX").string();
  const UniqueFd file(::mkostemp(draft.data(), O_CLOEXEC));
  if (!file) throw_failed("write in", directory);
  const fs::path path = directory / file_name;
  int cause = write_all(file.get(), value);
  if (cause == 0 && ::rename(draft.c_str(), path.c_str()) == 0) return;
  if (cause == 0) cause = errno;
  ::unlink(draft.c_str());
  errno = cause;
  throw_failed("write", path);
}

void remove_entry(const fs::path& directory, const std::string& file_name) {
  const fs::path path = directory / file_name;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_failed("remove", path);
}

FileStore::FileStore(fs::path directory, std::chrono::nanoseconds lock_timeout, std::function<void()> check_alive)
    : directory_(std::move(directory)), lock_timeout_(lock_timeout), check_alive_(std::move(check_alive)) {
  if (::mkdir(directory_.c_str(), 0700) == 0) return;
  check(errno != ENOENT,
        [&] { return fmt::format("cannot make store directory {}: its parent does not exist", directory_.string()); });
  if (errno != EEXIST) throw_failed("make", directory_);
  struct stat status {};
  if (::stat(directory_.c_str(), &status) != 0) throw_failed("look at", directory_);
  check(S_ISDIR(status.st_mode),
        [&] { return fmt::format("cannot use {} as store directory: it is not a directory", directory_.string()); });
}

fs::path FileStore::path_of(const std::string& key) const { return directory_ / file_name(key); }

void FileStore::set(const std::string& key, const std::string& value) {
  check_entry(key, value);
  write_entry(directory_, file_name(key), value);
}

std::string FileStore::wait(const std::string& key, Deadline deadline) {
  check_key(key);
  const auto began = Deadline::Clock::now();
  std::optional<std::string> value;
  const auto is_set = [&] {
    if (!(value = read(path_of(key)))) check_alive_();
    return value.has_value();
  };
  if (!poll_until(is_set, deadline, kWaitPace)) throw_missing(key, began);
  return *value;
}

std::string FileStore::get(const std::string& key) {
  check_key(key);
  if (auto value = read(path_of(key))) return *value;
  throw_unset(key);
}

std::int64_t FileStore::add(const std::string& key, std::int64_t increment) {
  check_key(key);
  const UniqueFd held = lock();
  const std::int64_t sum = sum_of(key, read(path_of(key)).value_or("0"), increment);
  write_entry(directory_, file_name(key), std::to_string(sum));
  return sum;
}

void FileStore::remove(const std::string& key) {
  check_key(key);
  remove_entry(directory_, file_name(key));
}

/// Held for one short read and write. The kernel releases it if the holder dies, but not if the holder is stopped.
UniqueFd FileStore::lock() const {
  const fs::path path = directory_ / "lock";
  UniqueFd lock(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock) throw_failed("open", path);
  const auto is_held = [&] {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) throw_failed("lock", path);
    return false;
  };
  if (!poll_until(is_held, Deadline::after(lock_timeout_), kPace))
    throw Timeout({.operation = "store"},
                  fmt::format("waited {:.1f} s for store lock {}, which another rank holds: check for a stopped rank",
                              std::chrono::duration<double>(lock_timeout_).count(), path.string()));
  return lock;
}

}  // namespace gradring::comm
