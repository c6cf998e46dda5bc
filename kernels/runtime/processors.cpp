// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace gradring {
namespace {

namespace fs = std::filesystem;

int online_processors() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

/// Processors in the affinity mask; nothing if the kernel does not report it.
std::optional<int> affinity_count() {
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  constexpr int kMostProcessors = 1 << 20;
  for (int size = CPU_SETSIZE; size <= kMostProcessors; size *= 2) {  // EINVAL: the kernel has more processors
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(size));
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    if (set && ::sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return std::nullopt;
}

enum class Version { v1, v2 };

/// A mounted hierarchy that may limit the CPU time.
struct Mount {
  Version version;
  std::string group;  ///< the control group that is seen at `point`: not "/" in a container with a bind mount
  fs::path point;
};

/// "cpu" in "cpu,cpuacct".
bool has_word(std::string_view list, std::string_view word) {
  return ("," + std::string(list) + ",").find("," + std::string(word) + ",") != std::string::npos;
}

/// Decodes \040 and its like, which stand for blanks in /proc/self/mountinfo.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// A line of /proc/self/mountinfo: ID PARENT DEVICE GROUP POINT OPTIONS [FIELDS] - TYPE SOURCE OPTIONS.
std::optional<Mount> mount_of(const std::string& line) {
  std::istringstream words(line);
  std::string id, parent, device, group, point, word;
  words >> id >> parent >> device >> group >> point;
  while (words >> word && word != "-") continue;
  std::string type, source, options;
  if (!(words >> type >> source >> options)) return std::nullopt;
  if (type == "cgroup2") return Mount{Version::v2, unescaped(group), unescaped(point)};
  if (type == "cgroup" && has_word(options, "cpu")) return Mount{Version::v1, unescaped(group), unescaped(point)};
  return std::nullopt;
}

/// This process's group in each hierarchy, of lines "4:cpu,cpuacct:/a/b" and "0::/a/b".
struct Membership {
  std::optional<std::string> v1, v2;

  explicit Membership(const fs::path& file) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      if (first == line.npos || second == line.npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      if (controllers.empty()) v2 = line.substr(second + 1);
      if (has_word(controllers, "cpu")) v1 = line.substr(second + 1);
    }
  }
  const std::optional<std::string>& in(Version version) const { return version == Version::v1 ? v1 : v2; }
};

/// The way from a mount's group to the process's: "b" from "/a" to "/a/b". Nothing if that is outside of what is mounted.
std::optional<fs::path> way_down(const std::string& from, const std::string& to) {
  const std::string above = from == "/" ? "" : from;
  if (!to.starts_with(above) || (to.size() > above.size() && to[above.size()] != '/')) return std::nullopt;
  const fs::path way = fs::path(to.substr(above.size())).relative_path();
  if (std::ranges::find(way, fs::path("..")) != way.end()) return std::nullopt;  // outside of the cgroup namespace
  return way;
}

/// The first word of a file; empty if it cannot be read.
std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

/// The limit of one group, from cpu.max ("150000 100000", "max 100000") or cpu.cfs_quota_us (-1: no limit).
std::optional<double> limit_of(const fs::path& group, Version version) {
  double quota = 0, period = 0;
  std::istringstream text;
  if (version == Version::v2) {
    std::string line;
    std::ifstream file(group / "cpu.max");
    std::getline(file, line);
    text.str(line);
  } else {
    text.str(first_word(group / "cpu.cfs_quota_us") + " " + first_word(group / "cpu.cfs_period_us"));
  }
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

void lower(std::optional<double>& least, std::optional<double> value) {
  if (value) least = least ? std::min(*least, *value) : *value;
}

/// The least limit of the groups from point / way up to `point`.
std::optional<double> least_limit(const fs::path& point, const fs::path& way, Version version) {
  std::optional<double> least = limit_of(point, version);
  fs::path group = point;
  for (const fs::path& name : way) lower(least, limit_of(group /= name, version));
  return least;
}

/// Over all mounts of one version. Where none shows the process's group, they show at least what a container was given.
std::optional<double> quota_in(const std::vector<Mount>& mounts, Version version, const Membership& membership,
                               const fs::path& root) {
  std::optional<double> shown, otherwise;
  bool is_shown = false;
  for (const Mount& mount : mounts) {
    if (mount.version != version) continue;
    const fs::path point = root / mount.point.relative_path();
    const auto& group = membership.in(version);
    const auto way = group ? way_down(mount.group, *group) : std::nullopt;
    is_shown = is_shown || way;
    lower(way ? shown : otherwise, least_limit(point, way.value_or(fs::path()), version));
  }
  return is_shown ? shown : otherwise;
}

}  // namespace

int Processors::usable() const {
  const double most = quota ? std::max(1.0, std::floor(*quota + 0.5)) : affinity;
  return std::max(1, static_cast<int>(std::min(most, static_cast<double>(affinity))));
}

Processors processors() {
  const int online = online_processors();
  return {.online = online, .affinity = affinity_count().value_or(online), .quota = cpu_quota()};
}

int usable_processors() { return processors().usable(); }

std::optional<double> cpu_quota(const fs::path& root) {
  const Membership membership(root / "proc/self/cgroup");
  std::vector<Mount> mounts;
  std::ifstream lines(root / "proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);)
    if (const auto mount = mount_of(line)) mounts.push_back(*mount);
  std::optional<double> quota = quota_in(mounts, Version::v1, membership, root);
  lower(quota, quota_in(mounts, Version::v2, membership, root));
  return quota;
}

}  // namespace gradring
