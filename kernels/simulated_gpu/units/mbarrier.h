// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace gradring::simulated_gpu {

/// The state of an mbarrier object: a phase completes when no arrival is pending and its transactions are balanced.
///
/// Source    PTX ISA 9.0: 9.7.13.15.2 Contents of the mbarrier object (with its ranges), 9.7.13.15.4 Phase, 9.7.13.15.5
///           Tracking asynchronous operations, 9.7.13.15.7 Arrive-on operation.
class Mbarrier {
 public:
  static constexpr std::uint32_t kMostArrivals = (1U << 20) - 1;
  static constexpr std::int32_t kMostBytes = (1 << 20) - 1;  ///< of the tx-count, of either sign

  /// mbarrier.init.
  ///
  /// Errors    Fault unless 1 <= count <= kMostArrivals.
  explicit Mbarrier(std::uint32_t count);

  /// mbarrier.arrive: the count of pending arrivals falls by `count`, which may complete the phase. Returns the state
  /// before, for is_complete_since() and pending_of().
  ///
  /// Errors    Fault unless 1 <= count <= pending().
  std::uint64_t arrive(std::uint32_t count = 1);
  /// mbarrier.arrive_drop: the same, and later phases expect as many arrivals less.
  ///
  /// Errors    Fault as of arrive(), or if later phases expect fewer.
  std::uint64_t arrive_and_drop(std::uint32_t count = 1);
  /// cp.async.mbarrier.arrive without .noinc: the current phase waits for one more arrival.
  void expect_arrival() { ++pending_; }
  /// mbarrier.expect_tx: the current phase waits for `bytes` more. mbarrier.arrive.expect_tx is this, then arrive().
  ///
  /// Errors    Fault if the tx-count leaves its range.
  void expect_tx(std::uint32_t bytes) { add_transactions(bytes); }
  /// complete_tx, by an asynchronous copy that has landed: may complete the phase, and may come before expect_tx.
  ///
  /// Errors    Fault if the tx-count leaves its range.
  void complete_tx(std::uint32_t bytes) {
    add_transactions(-static_cast<std::int64_t>(bytes));
    complete_if_due();
  }

  /// mbarrier.test_wait, try_wait: whether the phase in which arrive() returned `state` is complete.
  ///
  /// Errors    Fault if that phase is neither the current one nor the one before.
  bool is_complete_since(std::uint64_t state) const;
  /// mbarrier.test_wait.parity, try_wait.parity: whether the last phase of this parity is complete, of the current
  /// phase (that is not) and the one before. The phase before the first one counts as complete: parity 1 of a new
  /// mbarrier is.
  bool is_complete(bool odd) const { return (phase_ % 2 != 0) != odd; }
  /// mbarrier.pending_count of a state.
  static std::uint32_t pending_of(std::uint64_t state) { return static_cast<std::uint32_t>(state & kMostArrivals); }

  std::uint64_t phase() const { return phase_; }
  std::uint32_t pending() const { return pending_; }
  std::int32_t transaction_bytes() const { return transactions_; }
  /// For messages: "phase 3, 1 of 2 arrivals and 4096 bytes pending".
  std::string describe() const;

 private:
  void add_transactions(std::int64_t bytes);
  void complete_if_due();

  std::uint64_t phase_ = 0;
  std::uint32_t expected_;
  std::uint32_t pending_;
  std::int32_t transactions_ = 0;
};

/// The mbarrier objects in the shared memory of a block, by address. They are kept beside its bytes: the format of an
/// object is opaque, only mbarrier instructions may touch it, and bytes alone could not tell an object from what was
/// left there.
///
/// Source    PTX ISA 9.0: 9.7.13.15.3 Lifecycle of the mbarrier object (size and alignment: 8 bytes).
class Mbarriers {
 public:
  static constexpr std::uint32_t kBytes = 8;

  /// mbarrier.init.
  ///
  /// Errors    Fault if the address is not a multiple of 8, an object already exists there, or the count is out of
  ///           range.
  void init(std::uint32_t address, std::uint32_t count);
  /// mbarrier.inval.
  ///
  /// Errors    Fault if no object is there.
  void invalidate(std::uint32_t address) {
    at(address);
    objects_.erase(address);
  }
  /// Errors    Fault if no object is there: it was not initialised, or was invalidated.
  Mbarrier& at(std::uint32_t address);

  bool empty() const { return objects_.empty(); }
  /// Whether a byte of [address, address + bytes) belongs to an object: other instructions must not touch it.
  bool overlaps(std::uint32_t address, std::size_t bytes) const {
    const auto next = objects_.lower_bound(address < kBytes ? 0 : address - kBytes + 1);
    return next != objects_.end() && next->first < address + bytes;
  }

 private:
  std::map<std::uint32_t, Mbarrier> objects_;
};

}  // namespace gradring::simulated_gpu
