// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/control_groups.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace gradring {
namespace {

namespace fs = std::filesystem;
using Version = ControlGroup::Version;

/// A mounted hierarchy.
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

/// A line of /proc/self/mountinfo: ID PARENT DEVICE GROUP POINT OPTIONS [FIELDS] - TYPE SOURCE OPTIONS. Nothing unless it
/// has the controller.
std::optional<Mount> mount_of(const std::string& line, std::string_view controller) {
  std::istringstream words(line);
  std::string id, parent, device, group, point, word;
  words >> id >> parent >> device >> group >> point;
  while (words >> word && word != "-") continue;
  std::string type, source, options;
  if (!(words >> type >> source >> options)) return std::nullopt;
  if (type == "cgroup2") return Mount{Version::v2, unescaped(group), unescaped(point)};
  if (type == "cgroup" && has_word(options, controller)) return Mount{Version::v1, unescaped(group), unescaped(point)};
  return std::nullopt;
}

std::vector<Mount> mounts_of(const fs::path& file, std::string_view controller) {
  std::vector<Mount> mounts;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (const auto mount = mount_of(line, controller)) mounts.push_back(*mount);
  return mounts;
}

/// This process's group in each hierarchy, of lines "4:cpu,cpuacct:/a/b" and "0::/a/b".
struct Membership {
  std::optional<std::string> v1, v2;

  Membership(const fs::path& file, std::string_view controller) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      if (first == line.npos || second == line.npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      if (controllers.empty()) v2 = line.substr(second + 1);
      if (has_word(controllers, controller)) v1 = line.substr(second + 1);
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

/// Over all mounts of one version.
std::vector<ControlGroup> groups_in(const std::vector<Mount>& mounts, Version version, const Membership& membership,
                                    const fs::path& root) {
  std::vector<ControlGroup> shown, roots;
  for (const Mount& mount : mounts) {
    if (mount.version != version) continue;
    fs::path group = root / mount.point.relative_path();
    const auto& own = membership.in(version);
    const auto way = own ? way_down(mount.group, *own) : std::nullopt;
    (way ? shown : roots).push_back({version, group});
    if (!way) continue;
    for (const fs::path& name : *way) shown.push_back({version, group /= name});
  }
  return shown.empty() ? roots : shown;
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const fs::path& root) {
  const Membership membership(root / "proc/self/cgroup", controller);
  const std::vector<Mount> mounts = mounts_of(root / "proc/self/mountinfo", controller);
  std::vector<ControlGroup> groups = groups_in(mounts, Version::v1, membership, root);
  std::ranges::copy(groups_in(mounts, Version::v2, membership, root), std::back_inserter(groups));
  return groups;
}

}  // namespace gradring
