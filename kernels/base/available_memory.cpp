// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/base/control_groups.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// The number that a file begins with; nothing if it has none ("max") or cannot be read.
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::uint64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

/// The number after `name` in a file of lines "name number"; 0 if there is none.
std::uint64_t number_of(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ')
      return std::strtoull(line.c_str() + name.size(), nullptr, 10);
  return 0;
}

/// The files of one version of control groups.
struct GroupFiles {
  const char* limit;
  const char* usage;
  std::string_view cache[2];  ///< pages of files, in memory.stat: the kernel drops them when memory is short
};
constexpr GroupFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", {"active_file", "inactive_file"}};

/// What one group leaves.
std::uint64_t left_in(const ControlGroup& group) {
  const GroupFiles& files = group.version == ControlGroup::Version::v1 ? kVersion1 : kVersion2;
  const auto limit = number_in(group.folder / files.limit);
  if (!limit) return kUnlimited;
  std::uint64_t used = number_in(group.folder / files.usage).value_or(0);
  for (const std::string_view name : files.cache) used -= std::min(used, number_of(group.folder / "memory.stat", name));
  return *limit - std::min(*limit, used);
}

std::uint64_t left_in_groups(const fs::path& root) {
  std::uint64_t least = kUnlimited;
  for (const ControlGroup& group : control_groups("memory", root)) least = std::min(least, left_in(group));
  return least;
}

std::uint64_t left_of_address_space(const fs::path& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const std::uint64_t used =
      number_in(root / "proc/self/statm").value_or(0) * static_cast<std::uint64_t>(::getpagesize());
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace

std::uint64_t available_memory(const fs::path& root) {
  constexpr std::uint64_t kKibibyte = 1024;
  const std::uint64_t machine = number_of(root / "proc/meminfo", "MemAvailable:");
  return std::min({machine == 0 ? kUnlimited : machine * kKibibyte, left_in_groups(root), left_of_address_space(root)});
}

std::string lack_of_memory(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = 1u << 20, kAlwaysTried = 64 * kMebibyte;
  if (bytes <= kAlwaysTried) return {};
  const std::uint64_t available = available_memory();
  if (bytes <= available) return {};
  return std::to_string(bytes / kMebibyte) + " MiB of memory, but " + std::to_string(available / kMebibyte) +
         " MiB are available";
}

}  // namespace gradring
