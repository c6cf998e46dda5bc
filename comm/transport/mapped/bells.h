// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "comm/transport/mapped/control_block.h"

namespace gradring::comm {

/// How a rank waits for what a peer does to memory that both map, and how it wakes those who wait for it.
///
/// Who waits looks for a moment and then sleeps on a futex, its bell. It says for which rank it sleeps, and that one
/// alone rings, when it has changed something: a rank that needs many others is not woken by each of them in vain.
///
/// Threads   one thread at a time.
class Bells {
 public:
  Bells(std::vector<ControlBlock> blocks, int rank);

  /// Looks whether ready(), for about as long as a sleep would cost; not at all where looking cannot help: if ranks
  /// outnumber the cores that they may run on together, or one of `awaited` was last seen on this very core and cannot run meanwhile. Returns
  /// ready().
  bool look(const std::function<bool()>& ready, std::span<const int> awaited);
  /// Sleeps until `peer` rings (-1: anybody), at most for `longest`; may return early for no reason. awake() is asked
  /// when the peer can see that it must ring from now on: if it holds, there is no sleep.
  void sleep(int peer, std::chrono::nanoseconds longest, const std::function<bool()>& awake);

  /// Wakes `peer` if it sleeps for this rank; to be called after changing what it may wait for.
  void ring(int peer) const;
  /// Wakes everybody, whomever they sleep for.
  void ring_everybody() const;

 private:
  bool may_look(std::span<const int> awaited);
  bool crowded();
  void wake(int peer) const;
  ControlBlock::Status& status(int rank) const { return blocks_[static_cast<std::size_t>(rank)].status(); }

  std::vector<ControlBlock> blocks_;
  int rank_;
  std::optional<bool> crowded_;  // more ranks than cores; once all have said where they may run
};

}  // namespace gradring::comm
