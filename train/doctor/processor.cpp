// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/processor.h"

#include <sstream>

namespace gradring::train::doctor {

Processor Processor::read(std::istream& cpuinfo) {
  Processor processor;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    std::istringstream value(line.substr(colon + 1));
    if (key == "model name") std::getline(value >> std::ws, processor.name);
    if (key == "flags" || key == "Features")
      for (std::string flag; value >> flag;) processor.flags.insert(flag);
  }
  return processor;
}

std::optional<double> cpu_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || period <= 0) return std::nullopt;  // "max 100000"
  return quota / period;
}

}  // namespace gradring::train::doctor
