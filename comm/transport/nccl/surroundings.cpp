// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/surroundings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace gradring::comm::nccl {
namespace {

/// The exit code of a collective that came to no end.
constexpr int kTimedOut = 162;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "a-nameless-host";
}

/// The kernel's number of this start of this host; the name alone may be the same on many hosts.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : host_name();
}

/// No destructor runs: they would wait for the thread that hangs inside NCCL.
void leave_now(const std::string& last_words) {
  std::fputs((last_words + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(kTimedOut);
}

}  // namespace

Surroundings real_surroundings() {
  return {.api = load_library(),
          .host = boot_id(),
          .process = fmt::format("process {} on {}", ::getpid(), host_name()),
          .pid = ::getpid(),
          .set_environment = [](const std::string& name,
                                const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); },
          .leave_process = leave_now};
}

}  // namespace gradring::comm::nccl
