// SPDX-License-Identifier: Apache-2.0
#include "train/bench/resident_memory.h"

#include <fstream>
#include <string>

#include "train/report/environment_error.h"

namespace gradring::train::bench {

ResidentMemory resident_memory() {
  constexpr std::size_t kKilobyte = 1024;
  ResidentMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) memory.now_bytes = std::stoull(line.substr(line.find(':') + 1)) * kKilobyte;
    if (line.starts_with("VmHWM:")) memory.most_bytes = std::stoull(line.substr(line.find(':') + 1)) * kKilobyte;
  }
  if (memory.now_bytes == 0 || memory.most_bytes == 0)
    throw EnvironmentError("/proc/self/status does not say how much memory is resident: is /proc mounted?");
  return memory;
}

}  // namespace gradring::train::bench
