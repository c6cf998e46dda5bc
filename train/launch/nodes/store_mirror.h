// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// Keeps the folder by which the workers of one node meet (comm::FileStore) equal to those of the other nodes: tells what
/// a worker has set here, and puts in what one has set elsewhere. Good for set and wait; the sums of add stay local.
class StoreMirror {
 public:
  /// Errors    DeviceError if the system gives no descriptor.
  explicit StoreMirror(std::filesystem::path folder);

  /// Readable when there is something to tell.
  int fd() const { return watch_.get(); }
  /// The entries, file name and content, that workers here have set since the last call.
  std::vector<std::pair<std::string, std::string>> changes();
  /// An entry from elsewhere. A name that is none of an entry is ignored.
  void put(const std::string& name, const std::string& value);

 private:
  std::filesystem::path folder_;
  UniqueFd watch_;
  std::map<std::string, std::string> known_;
};

}  // namespace gradring::train
