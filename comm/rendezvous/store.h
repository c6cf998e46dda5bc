// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/runtime/deadline.h"

namespace gradring::comm {

/// A small table of strings that all ranks of a job see: how ranks find each other before they can talk. Values are
/// short (addresses, counts); at most kMaxKeyBytes and kMaxValueBytes.
///
/// Threads   any member function may be called from any thread.
/// Errors    InvalidArgument if a key is empty or too long, or a value is too long; CommError if the store is gone;
///           DeviceError if the system refuses its part: no space, no right to write, no descriptor.
class Store {
 public:
  static constexpr std::size_t kMaxKeyBytes = 80;
  static constexpr std::size_t kMaxValueBytes = 64 * 1024;

  virtual ~Store() = default;

  /// Sets `key`, whether or not it was there before, and wakes who waits for it.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// The value of `key`, as soon as somebody has set it.
  ///
  /// Errors    Timeout that names the key if the deadline passes first.
  virtual std::string wait(const std::string& key, Deadline deadline) = 0;
  /// The value of `key` now.
  ///
  /// Errors    InvalidArgument if nobody has set it.
  virtual std::string get(const std::string& key) = 0;
  /// Adds to the decimal number under `key`, as one step; a key that nobody has set counts as 0. Returns the sum.
  ///
  /// Errors    InvalidArgument if the value there is not a number.
  virtual std::int64_t add(const std::string& key, std::int64_t increment) = 0;
};

}  // namespace gradring::comm
