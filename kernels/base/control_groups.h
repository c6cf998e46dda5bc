// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace gradring {

/// A control group that limits this process, as the file system shows it.
struct ControlGroup {
  enum class Version : std::uint8_t { v1, v2 };
  Version version;
  std::filesystem::path folder;  ///< holds cpu.max, memory.max, ...; for version 1 cpu.cfs_quota_us, ...
};

/// The groups of a controller ("cpu", "memory") that limit this process: its own and all above it, of both versions, as
/// far as mounts show them (/proc/self/mountinfo, /proc/self/cgroup). Where no mount shows its own, the mounts' roots:
/// in a container, what that was given. `root`: the file system's, for tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::filesystem::path& root = "/");

}  // namespace gradring
