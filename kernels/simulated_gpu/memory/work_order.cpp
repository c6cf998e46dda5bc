// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/work_order.h"

#include <utility>

namespace gradring::simulated_gpu {

std::uint32_t WorkLog::add(const OrderedWork& work, Describe describe, std::uint32_t position) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({work.number, work.lane, std::move(describe), position});
  return static_cast<std::uint32_t>(entries_.size());
}

bool WorkLog::is_in_order(std::uint32_t entry, const OrderedWork& work) const {
  const std::lock_guard lock(mutex_);
  const Entry& used = entries_[entry - 1];
  return used.number == work.number || work.before.contains(used.lane, used.number);
}

std::string WorkLog::describe(std::uint32_t entry) const {
  const std::lock_guard lock(mutex_);
  const Entry& used = entries_[entry - 1];
  return used.describe(used.position);
}

}  // namespace gradring::simulated_gpu
