// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <set>
#include <string>
#include <vector>

#include "train/core/config/simulated_gpu_option.h"
#include "train/options/environment_variable.h"

namespace gradring::train::doctor {

/// The result of one check.
struct Finding {
  std::string name;      ///< "curl"
  std::string found;     ///< "7.88.1", "none"
  std::string advice{};  ///< how to fix it, in one line; empty if nothing is missing
};

struct Section {
  std::string title;  ///< "Built in"
  std::vector<Finding> findings;
};

/// Examines this program and this machine: what was built in, what was found, what a training would use, and which
/// launcher has started this process. Starts every Python on PATH until one imports torch, which takes seconds. Changes
/// nothing. `simulate_gpu`: the card whose simulated GPU a training would use; none: the device that it would choose
/// itself.
std::vector<Section> examine(const VariableLookup& environment, const std::string& simulate_gpu = kRealGpus);

/// The first processor of /proc/cpuinfo.
struct Processor {
  std::string name;             ///< "Intel(R) Xeon(R) Platinum 8481C"; empty if not stated
  std::set<std::string> flags;  ///< "avx2", "avx512f"; on Arm "asimd", "sve"

  static Processor read(std::istream& cpuinfo);
  bool has(const std::string& flag) const { return flags.contains(flag); }
};

/// Examines this machine: processor, memory, shared memory, GPU driver and libraries, a Python with torch for
/// comparisons.
std::vector<Finding> found_here(const VariableLookup& environment);

}  // namespace gradring::train::doctor
