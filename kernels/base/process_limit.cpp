// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/process_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <system_error>

#include "kernels/base/control_groups.h"

namespace gradring {
namespace {

std::string text_of(__rlimit_resource_t resource, rlim_t unit) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limit.rlim_cur / unit);
}

/// The least of this process's control groups; nothing if none has a limit ("max").
std::optional<std::uint64_t> pids_max() {
  std::optional<std::uint64_t> least;
  for (const ControlGroup& group : control_groups("pids"))
    if (std::uint64_t most = 0; std::ifstream(group.folder / "pids.max") >> most)
      least = std::min(least.value_or(most), most);
  return least;
}

}  // namespace

std::string process_limits() {
  constexpr rlim_t kKilobyte = 1024;  // of ulimit -v
  const std::optional<std::uint64_t> pids = pids_max();
  return "ulimit -u is " + text_of(RLIMIT_NPROC, 1) + ", ulimit -v is " + text_of(RLIMIT_AS, kKilobyte) +
         (pids ? ", pids.max is " + std::to_string(*pids) : "");
}

std::string reason_of_failed_fork(int error) {
  std::string reason = std::generic_category().message(error);
  if (error == EMFILE || error == ENFILE) return reason + "; raise ulimit -n, or start fewer processes";
  if (error != EAGAIN && error != ENOMEM) return reason;
  return reason + " (" + process_limits() + "); raise that limit, or start fewer processes";
}

}  // namespace gradring
