// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"

namespace gradring::comm {

/// A small key-value store that all ranks of a job share: ranks rendezvous through it before they are connected. Keys
/// and values are short (addresses, counts): at most kMaxKeyBytes and kMaxValueBytes.
///
/// Threads   safe.
/// Errors    InvalidArgument if a key is empty or too long, or a value is too long; CommError if the store is gone;
///           DeviceError if a system call fails: disk full, no permission, no descriptor.
class Store {
 public:
  static constexpr std::size_t kMaxKeyBytes = 80;
  static constexpr std::size_t kMaxValueBytes = 64 * 1024;

  virtual ~Store() = default;

  /// Sets or replaces the value of `key`, and wakes the ranks that wait for it.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until `key` is set; returns its value.
  ///
  /// Errors    Timeout that names the key if the deadline passes first.
  virtual std::string wait(const std::string& key, Deadline deadline) = 0;
  /// The value of `key` now.
  ///
  /// Errors    InvalidArgument if it is not set.
  virtual std::string get(const std::string& key) = 0;
  /// Adds atomically to the decimal number under `key`; an unset key counts as 0. Returns the sum.
  ///
  /// Errors    InvalidArgument if the value is not a number.
  virtual std::int64_t add(const std::string& key, std::int64_t increment) = 0;
  /// Unsets `key`, if it is set. Stores are limited: remove a key when all ranks have read it.
  virtual void remove(const std::string& key) = 0;
};

/// A store of remote clients holds as many entries or bytes as it keeps.
struct StoreFull : DeviceError {
  using DeviceError::DeviceError;
};

/// The store of ranks that are threads of one process.
class MemoryStore final : public Store {
 public:
  /// Rejects what would exceed `most_entries`, or `most_bytes` of keys and values, with StoreFull.
  explicit MemoryStore(std::size_t most_entries = SIZE_MAX, std::size_t most_bytes = SIZE_MAX)
      : most_entries_(most_entries), most_bytes_(most_bytes) {}

  /// The value of `key` now, if it is set.
  std::optional<std::string> find(const std::string& key);

  void set(const std::string& key, const std::string& value) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  std::string get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t increment) override;
  void remove(const std::string& key) override;

 private:
  void put(const std::string& key, const std::string& value);

  const std::size_t most_entries_, most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;  // of all keys and values
};

/// Sets `prefix`/RANK to `mine` and waits for the values of all ranks: passes each to `accept`, in rank order. Rank 0
/// collects them and hands them out under `prefix`/all/PART.
///
/// Cost      two or three requests of a rank, and one for each rank on rank 0.
/// Errors    Timeout that names all missing ranks; what `accept` throws.
void exchange(Store& store, const std::string& prefix, int rank, int world_size, const std::string& mine,
              Deadline deadline, const std::function<void(int rank, const std::string& value)>& accept);

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
