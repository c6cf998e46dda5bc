// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/memory_store.h"

#include "comm/rendezvous/store.h"
#include "kernels/base/deadline.h"

namespace gradring::comm {

void MemoryStore::set(const std::string& key, const std::string& value) {
  check_entry(key, value);
  {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

std::string MemoryStore::wait(const std::string& key, Deadline deadline) {
  check_key(key);
  std::unique_lock lock(mutex_);
  const Deadline::Clock::time_point began = Deadline::Clock::now();
  if (!wait_until(changed_, lock, deadline, [&] { return values_.contains(key); })) throw_missing(key, began);
  return values_[key];
}

std::string MemoryStore::get(const std::string& key) {
  check_key(key);
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) throw_unset(key);
  return found->second;
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t increment) {
  check_key(key);
  std::int64_t sum = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    sum = sum_of(key, found == values_.end() ? "0" : found->second, increment);
    values_[key] = std::to_string(sum);
  }
  changed_.notify_all();
  return sum;
}

}  // namespace gradring::comm
