// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/entry.h"

#include <fmt/format.h>

#include <charconv>

#include "comm/error.h"
#include "comm/rendezvous/store.h"

namespace gradring::comm {

void check_key(const std::string& key) {
  check(!key.empty() && key.size() <= Store::kMaxKeyBytes,
        fmt::format("a store's key has {} bytes: from 1 to {} are allowed", key.size(), Store::kMaxKeyBytes));
}

void check_entry(const std::string& key, const std::string& value) {
  check_key(key);
  check(value.size() <= Store::kMaxValueBytes, fmt::format("the value for the key '{}' has {} bytes: {} are allowed",
                                                           key, value.size(), Store::kMaxValueBytes));
}

std::int64_t sum_of(const std::string& key, const std::string& value, std::int64_t increment) {
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  check(error == std::errc() && stop == end,
        fmt::format("add to the key '{}', whose value is not a number: '{}'", key, value));
  std::int64_t sum = 0;
  check(!__builtin_add_overflow(number, increment, &sum), fmt::format("the sum under the key '{}' is too large", key));
  return sum;
}

void throw_missing(const std::string& key, Deadline::Clock::time_point began) {
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
  throw Timeout({.operation = "store"},
                fmt::format("waited {:.1f} s for the key '{}' in the store, and nobody has set it: start "
                            "the rank that should, or raise the timeout",
                            waited.count(), key));
}

void throw_unset(const std::string& key) {
  throw InvalidArgument(
      fmt::format("get of the key '{}', which nobody has set in the store: wait for it instead", key));
}

}  // namespace gradring::comm
