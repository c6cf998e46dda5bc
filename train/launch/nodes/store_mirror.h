// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/rendezvous/store.h"
#include "kernels/base/file.h"

namespace gradring::train {

/// Keeps the store of one node's workers (comm::FileStore) equal to those of the other nodes: returns what a worker set
/// or removed here, and does what one did elsewhere. Supports set, wait and remove; the sums of add stay local.
class StoreMirror {
 public:
  /// The store accepts at most `most_entries` entries.
  ///
  /// Errors    DeviceError if the system has no descriptor left.
  explicit StoreMirror(std::filesystem::path folder, std::size_t most_entries = comm::kMaxEntries);

  /// Readable when changes() may return entries.
  int fd() const { return watch_.get(); }
  /// The entries, file name and content, that workers here have set since the last call, and without content those that
  /// they have removed. One that cannot be read now, because no descriptor is left, is returned by a later call.
  ///
  /// Errors    DeviceError if the folder cannot be read.
  std::vector<std::pair<std::string, std::optional<std::string>>> changes();
  /// Sets an entry as elsewhere, or removes it if there is no value. Ignores names that are not of entries.
  ///
  /// Errors    MessageError if the store is full and the name is new; DeviceError if it cannot be written: disk full.
  void put(const std::string& name, const std::optional<std::string>& value);

 private:
  void collect_names();

  std::filesystem::path folder_;
  std::size_t most_entries_;
  UniqueFd watch_;
  std::map<std::string, std::string> known_;
  std::set<std::string> changed_;  // names of entries that were set or removed, and are to be read
};

}  // namespace gradring::train
