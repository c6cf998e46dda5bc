// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>

#include "comm/rendezvous/store.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::comm {

/// A store in a directory that all ranks can reach: one file per key. A value appears whole or not at all, because it
/// is written elsewhere and then renamed. Processes that find each other through it need nothing else; who starts them
/// chooses a fresh directory and removes it afterwards.
///
/// Errors    also DeviceError if the directory is full or cannot be read and written, and Timeout if another process
///           holds the lock of add for too long.
class FileStore final : public Store {
 public:
  /// Makes the directory (readable by this user alone) if it is not there. An add waits up to `patience` for the adds
  /// of others.
  ///
  /// Errors    InvalidArgument if it cannot be used.
  explicit FileStore(std::filesystem::path directory, std::chrono::nanoseconds patience = std::chrono::seconds(30));

  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;

 private:
  std::filesystem::path path_of(const std::string& key) const;
  void write(const std::string& key, const std::string& value) const;
  UniqueFd lock() const;

  std::filesystem::path directory_;
  std::chrono::nanoseconds patience_;
};

}  // namespace gradring::comm
