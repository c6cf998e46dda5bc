// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTemporaryPath = 40;  // a socket path has at most 107 characters, our part takes about 30
constexpr std::size_t kMaxSecretBytes = 4096, kMinTokenLength = 16;
constexpr auto kLockTimeout = std::chrono::seconds(10);
constexpr PollPace kPace = {
    .spins = 0, .first_nap = std::chrono::milliseconds(1), .longest_nap = std::chrono::milliseconds(20)};

/// Why a folder is not private to this user; empty if it is.
std::string folder_defect(const struct stat& facts) {
  if (S_ISLNK(facts.st_mode)) return "it is a symbolic link, expected a folder";
  if (!S_ISDIR(facts.st_mode)) return "it is not a folder";
  if (facts.st_uid != ::geteuid()) return fmt::format("it belongs to user {}, expected {}", facts.st_uid, ::geteuid());
  const unsigned mode = facts.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  if (mode != S_IRWXU) return fmt::format("its mode is {:04o}, expected 0700", mode);
  return "";
}

bool is_private(const fs::path& path) {
  const UniqueFd folder = open_folder(path);
  struct stat facts {};
  return folder && ::fstat(folder.get(), &facts) == 0 && folder_defect(facts).empty();
}

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw DeviceError(
      fmt::format("cannot use {}, this user's private folder: {}; remove it, or set XDG_RUNTIME_DIR or "
                  "TMPDIR to a folder of your own with mode 0700",
                  path.string(), reason));
}

/// Why a file is not private; empty if it is. Secrets that the system mounts belong to root.
std::string file_defect(const struct stat& facts) {
  const unsigned mode = facts.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return fmt::format("belongs to user {}, expected {}", facts.st_uid, ::geteuid());
  if ((mode & (S_IRWXG | S_IRWXO)) != 0)
    return fmt::format(
        "has mode {:04o}, expected 0600: other users can open it; chmod 600 it, and put a new secret there", mode);
  return "";
}

std::string bytes_of(const UniqueFd& file, const fs::path& path) try {
  return read_small_file(file, kMaxSecretBytes);
} catch (const ReadError& error) {
  throw DeviceError(path.string() + " " + error.what());
}

}  // namespace

fs::path temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  const bool fits = folder != nullptr && *folder == '/' && std::strlen(folder) <= kMaxTemporaryPath;
  return fits ? folder : "/tmp";
}

UniqueFd open_folder(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

fs::path PrivateFolder::system_runtime_dir() {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && *folder == '/' ? folder : "";
}

PrivateFolder::PrivateFolder(const fs::path& runtime_dir, const fs::path& temporary) : path_(runtime_dir) {
  if (!path_.empty() && is_private(path_)) return;
  path_ = temporary / fmt::format("gradring-{}", ::geteuid());
  is_ours_to_remove_ = true;
}

UniqueFd PrivateFolder::open() const {
  struct stat facts {};
  UniqueFd folder = open_folder(path_);
  const int reason = errno;
  if (!folder && reason == ENOENT) return {};
  const bool known = folder ? ::fstat(folder.get(), &facts) == 0 : ::lstat(path_.c_str(), &facts) == 0;
  const std::string defect = known ? folder_defect(facts) : "";
  if (!defect.empty()) refuse(path_, defect);
  if (!folder) refuse(path_, std::strerror(reason));
  return folder;
}

UniqueFd PrivateFolder::lock() const {
  const auto deadline = Deadline::after(kLockTimeout);
  while (!deadline.passed()) {
    if (is_ours_to_remove_ && ::mkdir(path_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
      refuse(path_, fmt::format("it cannot be created: {}", std::strerror(errno)));
    UniqueFd folder = open();
    if (!folder && !is_ours_to_remove_) refuse(path_, "it no longer exists");
    const auto is_locked = [&] { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; };
    if (!folder || !poll_until(is_locked, deadline, kPace)) continue;
    if (is_at(path_, folder)) return folder;  // else another process removed it as empty: create it again
  }
  refuse(path_, fmt::format("another process has held its lock for {} s", kLockTimeout.count()));
}

void PrivateFolder::remove_if_empty() const noexcept {
  if (is_ours_to_remove_) ::rmdir(path_.c_str());
}

void write_private_file(const fs::path& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  const int error = file ? write_all(file.get(), text) : errno;
  if (error != 0) throw DeviceError(fmt::format("cannot write {}: {}", path.string(), std::strerror(error)));
}

std::string read_private_file(const fs::path& path) {
  const auto expect = [&](bool condition, const std::string& defect) {
    if (!condition) throw InvalidArgument(path.string() + " " + defect);
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  expect(file || errno != ENOENT, "does not exist");
  if (!file || ::fstat(file.get(), &facts) != 0)
    throw DeviceError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  const std::string defect = file_defect(facts);
  expect(defect.empty(), defect);
  std::string text = bytes_of(file, path);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  expect(!text.empty(), "is empty, expected a secret");
  return text;
}

std::string given_token(const VariableLookup& lookup) {
  const std::string file = lookup(kTokenFileVariable).value_or("");
  const char* const source = file.empty() ? kTokenVariable : kTokenFileVariable;
  std::string token = lookup(kTokenVariable).value_or("");
  try {
    if (!token.empty() && !file.empty()) throw InvalidArgument("GRADRING_TOKEN is also set: unset one of them");
    if (!file.empty()) token = read_private_file(file);
    if (!token.empty() && token.size() < kMinTokenLength)
      throw InvalidArgument(
          fmt::format("the token has {} characters, expected {} or more, so that nobody guesses it: "
                      "take one that `openssl rand -hex 32` has printed",
                      token.size(), kMinTokenLength));
    return token;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", source, error.what()));
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace gradring::train
