// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/counters.h"

#include <algorithm>

namespace gradring::simulated_gpu {

Counters& Counters::operator+=(const Counters& other) {
  blocks += other.blocks;
  warps += other.warps;
  instructions.resize(std::max(instructions.size(), other.instructions.size()));
  for (std::size_t i = 0; i < other.instructions.size(); ++i) {
    Instruction& sum = instructions[i];
    const Instruction& added = other.instructions[i];
    sum.executions += added.executions;
    sum.lanes += added.lanes;
    sum.requests += added.requests;
    sum.bytes += added.bytes;
    sum.sectors += added.sectors;
    sum.least_sectors += added.least_sectors;
    sum.shared_requests += added.shared_requests;
    sum.wavefronts += added.wavefronts;
    sum.least_wavefronts += added.least_wavefronts;
  }
  by_multiprocessor.resize(std::max(by_multiprocessor.size(), other.by_multiprocessor.size()));
  for (std::size_t i = 0; i < other.by_multiprocessor.size(); ++i) {
    std::vector<std::uint64_t>& sums = by_multiprocessor[i];
    const std::vector<std::uint64_t>& added = other.by_multiprocessor[i];
    sums.resize(std::max(sums.size(), added.size()));
    for (std::size_t k = 0; k < added.size(); ++k) sums[k] += added[k];
  }
  read.add(other.read);
  written.add(other.written);
  return *this;
}

}  // namespace gradring::simulated_gpu
