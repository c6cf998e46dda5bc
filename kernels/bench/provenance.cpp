// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/provenance.h"

#include <sys/utsname.h>

#include <chrono>
#include <ctime>

#include "kernels/bench/commit.h"
#include "kernels/runtime/host/host_device.h"

namespace gradring::kernels::bench {
namespace {

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[sizeof "2026-11-20"] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "unknown system";
}

}  // namespace

Provenance provenance() {
  return {.machine = HostDevice().description() + ", " + kernel_release(), .date = today(), .commit = kCommit};
}

std::string to_string(const Provenance& provenance) {
  return provenance.machine + "; " + provenance.date + "; commit " + provenance.commit;
}

}  // namespace gradring::kernels::bench
