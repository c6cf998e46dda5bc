// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/transports/mapped/control_block.h"

namespace gradring::comm {

/// Waiting for a change that a peer makes to shared memory, and waking ranks that wait.
///
/// A waiting rank spins briefly and then parks on a futex, its doorbell. It states the rank that it waits for, and only
/// that rank notifies it. So a rank that needs many peers is not woken by each of them.
///
/// Threads   one thread at a time.
class Doorbell {
 public:
  Doorbell(std::vector<ControlBlock> blocks, int rank);

  /// Polls ready() for about as long as a park would cost. Polls only once where spinning cannot help: if the ranks
  /// outnumber the cores that they may run on, or a rank of `awaited` was last seen on this core. Returns ready().
  bool spin(const std::function<bool()>& ready, std::span<const int> awaited);
  /// Parks until `peer` notifies (-1: any rank), for at most `longest`; may return early. awake() is checked once the
  /// peer can see that it must notify: if it holds, this returns at once. Returns whether a rank has notified since the
  /// last park.
  bool park(int peer, std::chrono::nanoseconds longest, const std::function<bool()>& awake);

  /// Wakes `peer` if it is parked for this rank. Call it after a change that the peer may wait for.
  void notify(int peer) const;
  /// Wakes all parked ranks, whichever rank they wait for. A rank that is not parked returns from its next park at
  /// once.
  void notify_all() const;

 private:
  bool may_spin(std::span<const int> awaited);
  bool oversubscribed();
  void wake(int peer) const;
  ControlBlock::Status& status(int rank) const { return blocks_[static_cast<std::size_t>(rank)].status(); }

  std::vector<ControlBlock> blocks_;
  int rank_;
  std::uint32_t heard_ = 0;             // this rank's doorbell when it last returned from park
  std::optional<bool> oversubscribed_;  // more ranks than cores; known once all ranks have published their cores
};

}  // namespace gradring::comm
