// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace gradring::comm {

/// A fresh directory that this user alone can enter; removed at the end with all that is in it.
class PrivateDirectory {
 public:
  /// Errors    DeviceError if it cannot be made: it says where and why.
  explicit PrivateDirectory(const std::filesystem::path& parent);
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gradring::comm
