// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/store.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "comm/transport/error.h"
#include "kernels/base/number_list.h"

namespace gradring::comm {

void exchange(Store& store, const std::string& prefix, int rank, int world_size, const std::string& mine,
              Deadline deadline, const std::function<void(int rank, const std::string& value)>& accept) {
  const auto began = Deadline::Clock::now();
  const auto key_of = [&](int of) { return fmt::format("{}/{}", prefix, of); };
  store.set(key_of(rank), mine);
  std::vector<int> missing;
  for (int from = 0; from < world_size; ++from) {
    std::string value;
    try {
      value = store.wait(key_of(from), deadline);
    } catch (const Timeout&) {
      missing.push_back(from);
      continue;
    }
    accept(from, value);
  }
  if (missing.empty()) return;
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
  throw Timeout({rank, missing.front(), "join", 0},
                fmt::format("rank {} waited {:.1f} s for rank {} of a world of {} to join: start the missing ranks, "
                            "give all ranks the same world size and store, or raise the timeout",
                            rank, waited.count(), number_list(missing), world_size));
}

void check_key(const std::string& key) {
  check(!key.empty() && key.size() <= Store::kMaxKeyBytes, [&] {
    return fmt::format("invalid store key: found {} bytes, expected 1 to {}", key.size(), Store::kMaxKeyBytes);
  });
}

void check_entry(const std::string& key, const std::string& value) {
  check_key(key);
  check(value.size() <= Store::kMaxValueBytes, [&] {
    return fmt::format("invalid value of store key '{}': found {} bytes, expected at most {}", key, value.size(),
                       Store::kMaxValueBytes);
  });
}

std::int64_t sum_of(const std::string& key, const std::string& value, std::int64_t increment) {
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  check(error == std::errc() && stop == end,
        [&] { return fmt::format("cannot add to store key '{}': found '{}', expected a decimal number", key, value); });
  std::int64_t sum = 0;
  check(!__builtin_add_overflow(number, increment, &sum),
        [&] { return fmt::format("cannot add to store key '{}': the sum exceeds 64 bits", key); });
  return sum;
}

void throw_missing(const std::string& key, Deadline::Clock::time_point began) {
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
  throw Timeout({.operation = "store"}, fmt::format("waited {:.1f} s for store key '{}', which no rank has set: start "
                                                    "the rank that sets it, or raise the timeout",
                                                    waited.count(), key));
}

void throw_unset(const std::string& key) {
  throw InvalidArgument(fmt::format("cannot get store key '{}': no rank has set it; use wait instead", key));
}

void MemoryStore::set(const std::string& key, const std::string& value) {
  check_entry(key, value);
  {
    const std::lock_guard lock(mutex_);
    put(key, value);
  }
  changed_.notify_all();
}

void MemoryStore::put(const std::string& key, const std::string& value) {
  const auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const std::size_t bytes = bytes_ - before + key.size() + value.size();
  if (bytes > most_bytes_ || (found == values_.end() && values_.size() >= most_entries_))
    throw StoreFull(fmt::format("the store is full: {} entries with {} bytes", values_.size(), bytes_));
  bytes_ = bytes;
  values_.insert_or_assign(key, value);
}

std::optional<std::string> MemoryStore::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::string MemoryStore::wait(const std::string& key, Deadline deadline) {
  check_key(key);
  std::unique_lock lock(mutex_);
  const Deadline::Clock::time_point began = Deadline::Clock::now();
  if (!wait_until(changed_, lock, deadline, [&] { return values_.contains(key); })) throw_missing(key, began);
  return values_.at(key);
}

std::string MemoryStore::get(const std::string& key) {
  check_key(key);
  if (auto value = find(key)) return *value;
  throw_unset(key);
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t increment) {
  check_key(key);
  std::int64_t sum = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    sum = sum_of(key, found == values_.end() ? "0" : found->second, increment);
    put(key, std::to_string(sum));
  }
  changed_.notify_all();
  return sum;
}

void MemoryStore::remove(const std::string& key) {
  check_key(key);
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return;
  bytes_ -= key.size() + found->second.size();
  values_.erase(found);
}

}  // namespace gradring::comm
