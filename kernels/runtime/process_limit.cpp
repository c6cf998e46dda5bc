// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/process_limit.h"

#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace gradring {
namespace {

std::string text_of(__rlimit_resource_t resource, rlim_t unit) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limit.rlim_cur / unit);
}

/// Of version 1 or 2. Containers mount their own group at the root.
std::string pids_max() {
  std::string group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) group = line.substr(3);
  for (const std::string& file : {"/sys/fs/cgroup" + group + "/pids.max", std::string("/sys/fs/cgroup/pids.max"),
                                  std::string("/sys/fs/cgroup/pids/pids.max")}) {
    std::string most;
    if (std::ifstream(file) >> most) return most;
  }
  return {};
}

}  // namespace

std::string process_limits() {
  constexpr rlim_t kKilobyte = 1024;  // of ulimit -v
  const std::string pids = pids_max();
  return "ulimit -u is " + text_of(RLIMIT_NPROC, 1) + ", ulimit -v is " + text_of(RLIMIT_AS, kKilobyte) +
         (pids.empty() ? "" : ", pids.max is " + pids);
}

std::string reason_of_failed_fork(int error) {
  const std::string reason = std::generic_category().message(error);
  if (error != EAGAIN && error != ENOMEM) return reason;
  return reason + " (" + process_limits() + "); raise that limit, or start fewer processes";
}

}  // namespace gradring
