// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "comm/rendezvous/store.h"
#include "kernels/base/file.h"

namespace gradring::comm {

/// Writes a value to a temporary file in a store's directory and renames that to `file_name`, so that readers never see
/// a partial value. No temporary file remains, whether it fails or not.
///
/// Errors    DeviceError, and the file is as before.
void write_entry(const std::filesystem::path& directory, const std::string& file_name, const std::string& value);
/// Removes an entry, if it is there.
///
/// Errors    DeviceError.
void remove_entry(const std::filesystem::path& directory, const std::string& file_name);

/// A store in a directory that all ranks can access: one file per key (write_entry). The launcher chooses a fresh
/// directory and removes it afterwards.
///
/// Errors    as Store; Timeout also if another process holds the lock of add for too long.
class FileStore final : public Store {
 public:
  /// Creates the directory with mode 0700 if it is missing. An add waits up to `lock_timeout` for other adds. A wait
  /// calls `check_alive` again and again while the key is unset: what it throws ends the wait.
  ///
  /// Errors    InvalidArgument if it cannot be used.
  explicit FileStore(
      std::filesystem::path directory, std::chrono::nanoseconds lock_timeout = std::chrono::seconds(30),
      std::function<void()> check_alive = [] {});

  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;
  void remove(const std::string& key) override;

 private:
  std::filesystem::path path_of(const std::string& key) const;
  UniqueFd lock() const;

  std::filesystem::path directory_;
  std::chrono::nanoseconds lock_timeout_;
  std::function<void()> check_alive_;
};

}  // namespace gradring::comm
