// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/store.h"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "comm/transport/error.h"
#include "kernels/base/number_list.h"

namespace gradring::comm {

namespace {

using RankValues = std::map<int, std::string>;

std::string part_key(const std::string& prefix, std::size_t part) { return fmt::format("{}/all/{}", prefix, part); }

/// Sets the values under few keys: a rank reads these, and not one of each rank. A part begins with '+' if another one
/// follows. Ranks read what is too long for a part under its own key.
void hand_out(Store& store, const std::string& prefix, const RankValues& values) {
  std::vector<std::string> parts = {"+"};
  for (const auto& [rank, value] : values) {
    const std::string entry = fmt::format("{} {} {}", rank, value.size(), value);
    if (entry.size() >= Store::kMaxValueBytes) continue;
    if (parts.back().size() + entry.size() > Store::kMaxValueBytes) parts.emplace_back("+");
    parts.back() += entry;
  }
  parts.back().front() = '.';
  for (std::size_t part = 0; part < parts.size(); ++part) store.set(part_key(prefix, part), parts[part]);
}

/// Adds the entries of a part. Returns whether another one follows.
bool read_part(const std::string& text, RankValues& values) {
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  const auto number = [&] {
    std::size_t found = 0;
    const auto [stop, error] = std::from_chars(at, end, found);
    check<DeviceError>(error == std::errc() && stop != end && *stop == ' ', "invalid list of ranks in the store");
    at = stop + 1;
    return found;
  };
  while (at < end) {
    const auto rank = static_cast<int>(number());
    const std::size_t length = number();
    check<DeviceError>(length <= static_cast<std::size_t>(end - at), "invalid list of ranks in the store");
    values[rank].assign(at, length);
    at += length;
  }
  return text.starts_with('+');
}

/// Where the store does not answer, it names the rank that serves it.
void rethrow_unless_missing(const Timeout& error) {
  if (error.context().peer >= 0) throw;
}

/// What rank 0 has handed out. At the deadline, what it has handed out by then.
RankValues read_handed_out(Store& store, const std::string& prefix, Deadline deadline) {
  RankValues values;
  try {
    for (std::size_t part = 0; read_part(store.wait(part_key(prefix, part), deadline), values);) ++part;
  } catch (const Timeout& error) {
    rethrow_unless_missing(error);
  }
  return values;
}

std::optional<std::string> wait_if_set(Store& store, const std::string& key, Deadline deadline) try {
  return store.wait(key, deadline);
} catch (const Timeout& error) {
  rethrow_unless_missing(error);
  return std::nullopt;
}

}  // namespace

void exchange(Store& store, const std::string& prefix, int rank, int world_size, const std::string& mine,
              Deadline deadline, const std::function<void(int rank, const std::string& value)>& accept) {
  const auto began = Deadline::Clock::now();
  const auto key_of = [&](int of) { return fmt::format("{}/{}", prefix, of); };
  store.set(key_of(rank), mine);
  const bool collects = rank == 0;
  RankValues values;
  if (!collects) values = read_handed_out(store, prefix, deadline);
  std::vector<int> missing;
  try {
    for (int from = 0; from < world_size; ++from) {
      if (!values.contains(from)) {  // rank 0 has given up, or it is too long for its list
        const auto value = wait_if_set(store, key_of(from), collects ? deadline : Deadline::after({}));
        if (value)
          values[from] = *value;
        else
          missing.push_back(from);
      }
      if (values.contains(from)) accept(from, values[from]);
    }
    const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
    if (!missing.empty())
      throw Timeout(
          {rank, missing.front(), "join", 0},
          fmt::format("rank {} waited {:.1f} s for rank {} of a world of {} to join: start the missing ranks, "
                      "give all ranks the same world size and store, or raise the timeout",
                      rank, waited.count(), number_list(missing), world_size));
  } catch (...) {
    if (collects) try {
        hand_out(store, prefix, values);  // so that the others find the same error
      } catch (const std::exception&) {   // the first error says more
      }
    throw;
  }
  if (collects && world_size > 1) hand_out(store, prefix, values);
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
