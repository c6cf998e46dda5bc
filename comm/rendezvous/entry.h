// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/runtime/deadline.h"

namespace gradring::comm {

/// Checks and errors that all stores share.

/// The most keys that a store keeps for remote clients: it bounds what a faulty client can make it store.
inline constexpr std::size_t kMaxEntries = 100'000;

/// Errors    InvalidArgument if the key is empty or longer than Store::kMaxKeyBytes.
void check_key(const std::string& key);
/// Errors    InvalidArgument also if the value is longer than Store::kMaxValueBytes.
void check_entry(const std::string& key, const std::string& value);
/// The number `value` plus `increment`.
///
/// Errors    InvalidArgument if the value is not a number, or the sum is too large for one.
std::int64_t sum_of(const std::string& key, const std::string& value, std::int64_t increment);
/// Throws Timeout for a wait that started at `began`.
[[noreturn]] void throw_missing(const std::string& key, Deadline::Clock::time_point began);
/// Throws InvalidArgument for a get.
[[noreturn]] void throw_unset(const std::string& key);

}  // namespace gradring::comm
