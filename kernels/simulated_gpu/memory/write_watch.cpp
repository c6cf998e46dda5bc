// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/write_watch.h"

#include <utility>

namespace gradring::simulated_gpu {

void WriteWatch::begin(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  writes_ = {};
  first_ = address;
  end_ = bytes == 0 ? 0 : address + bytes;
}

void WriteWatch::note(std::string writer) {
  const std::lock_guard lock(mutex_);
  ++writes_.count;
  writes_.last = std::move(writer);
}

WriteWatch::Writes WriteWatch::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

}  // namespace gradring::simulated_gpu
