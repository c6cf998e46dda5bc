// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/dependencies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace gradring::comm::nccl {
namespace {

/// Exit code after a collective that did not end.
constexpr int kTimedOut = 162;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "unknown-host";
}

/// Identifies this boot of this host; host names are not unique.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : host_name();
}

/// Runs no destructors: they would wait for the thread that hangs inside NCCL.
void exit_now(const std::string& message) {
  std::fputs((message + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(kTimedOut);
}

}  // namespace

Dependencies system_dependencies() {
  return {.api = load_library(),
          .host = boot_id(),
          .process = fmt::format("process {} on {}", ::getpid(), host_name()),
          .pid = ::getpid(),
          .set_environment = [](const std::string& name,
                                const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); },
          .exit_process = exit_now};
}

}  // namespace gradring::comm::nccl
