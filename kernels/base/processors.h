// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace gradring {

/// What this process may use of the machine's processors.
struct Processors {
  int online = 1;                 ///< of the machine
  int affinity = 1;               ///< in the CPU affinity mask of the calling thread
  std::optional<double> quota{};  ///< processors' worth of time that its control groups grant; nothing: no limit

  /// The number of threads that keep them busy: the affinity, but no more than the quota, rounded to the nearest whole
  /// number and at least 1. 1.4 is 1, 1.5 is 2. A thread too many would spend the time that the others need for a step,
  /// and then all of them wait for the next period.
  int usable() const;
};

/// Those of this process, now.
Processors processors();

/// processors().usable(): the default number of threads or ranks.
int usable_processors();

/// The CPU bandwidth limit of this process's control groups, of version 2 (cpu.max) and 1 (cpu.cfs_quota_us), in
/// processors: the least over the groups from its own up to the root of each mounted hierarchy. Nothing: no limit, or none
/// that is visible here. `root`: the file system's, for tests.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

}  // namespace gradring
