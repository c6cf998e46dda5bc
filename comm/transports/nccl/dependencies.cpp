// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/dependencies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "kernels/base/host_name.h"

namespace gradring::comm::nccl {
namespace {

/// Exit code after a collective that did not end.
constexpr int kTimedOut = 162;

/// Identifies this boot of this host; host names are not unique.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : host_name();
}

/// Containers share the boot id of their host, but neither its process ids nor, as a rule, its loopback interface.
std::string namespaces() {
  std::string all;
  for (const char* const kind : {"pid", "net"}) {
    std::error_code missing;
    all += std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", kind), missing).string();
  }
  return all;
}

/// Runs no destructors: they would wait for the thread that hangs inside NCCL.
void exit_now(const std::string& message) {
  std::fputs((message + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(kTimedOut);
}

}  // namespace

Dependencies system_dependencies(Api api) {
  return {.api = std::move(api),
          .host = boot_id(),
          .namespaces = namespaces(),
          .process = fmt::format("process {} on {}", ::getpid(), host_name()),
          .pid = ::getpid(),
          .set_default_environment = [](const std::string& name,
                                        const std::string& value) { ::setenv(name.c_str(), value.c_str(), 0); },
          .exit_process = exit_now};
}

}  // namespace gradring::comm::nccl
