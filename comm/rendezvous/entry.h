// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/runtime/deadline.h"

namespace gradring::comm {

/// What all stores hold their callers to, and say to them.

/// Errors    InvalidArgument if the key is empty or longer than Store::kMaxKeyBytes.
void check_key(const std::string& key);
/// Errors    InvalidArgument also if the value is longer than Store::kMaxValueBytes.
void check_entry(const std::string& key, const std::string& value);
/// The number `value` plus `increment`.
///
/// Errors    InvalidArgument if the value is not a number, or the sum is too large for one.
std::int64_t sum_of(const std::string& key, const std::string& value, std::int64_t increment);
/// Throws the Timeout of a wait that began at `began`.
[[noreturn]] void throw_missing(const std::string& key, Deadline::Clock::time_point began);
/// Throws the InvalidArgument of a get.
[[noreturn]] void throw_unset(const std::string& key);

}  // namespace gradring::comm
