// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "kernels/base/control_groups.h"

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

/// The first word of a file; empty if it cannot be read.
std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

/// The limit of one group, from cpu.max ("150000 100000", "max 100000") or cpu.cfs_quota_us (-1: no limit).
std::optional<double> limit_of(const ControlGroup& group) {
  double quota = 0, period = 0;
  std::istringstream text;
  if (group.version == ControlGroup::Version::v2) {
    std::string line;
    std::ifstream file(group.folder / "cpu.max");
    std::getline(file, line);
    text.str(line);
  } else {
    text.str(first_word(group.folder / "cpu.cfs_quota_us") + " " + first_word(group.folder / "cpu.cfs_period_us"));
  }
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
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
  std::optional<double> least;
  for (const ControlGroup& group : control_groups("cpu", root))
    if (const auto limit = limit_of(group)) least = std::min(least.value_or(*limit), *limit);
  return least;
}

}  // namespace gradring
