// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/fault_log.h"

#include <cstdio>

namespace gradring::simulated_gpu {

void FaultLog::add(const std::string& fault) {
  const std::lock_guard lock(mutex_);
  if (!known_.insert(fault).second) return;
  faults_.push_back(fault);
  std::fprintf(stderr, "simulated GPU: %s\n", fault.c_str());
}

std::vector<std::string> FaultLog::all() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

}  // namespace gradring::simulated_gpu
