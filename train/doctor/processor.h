// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <optional>
#include <set>
#include <string>

namespace gradring::train::doctor {

/// What /proc/cpuinfo says of the first processor.
struct Processor {
  std::string name;             ///< "Intel(R) Xeon(R) Platinum 8481C"; empty on machines that do not say
  std::set<std::string> flags;  ///< "avx2", "avx512f"; on Arm "asimd", "sve"

  static Processor read(std::istream& cpuinfo);
  bool has(const std::string& flag) const { return flags.contains(flag); }
};

/// The processors that a control group grants, from the text of cpu.max ("150000 100000" is 1.5); nothing without a limit.
std::optional<double> cpu_quota(const std::string& cpu_max);

}  // namespace gradring::train::doctor
