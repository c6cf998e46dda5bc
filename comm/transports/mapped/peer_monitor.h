// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/transport/group_failure.h"
#include "comm/transports/mapped/control_block.h"
#include "comm/transports/mapped/doorbell.h"
#include "comm/transports/mapped/peer_memory.h"
#include "kernels/base/deadline.h"

namespace gradring::comm {

/// Waits for peers and detects their failures. A rank that fails writes the reason and the failed rank to its control
/// block, so that all ranks fail and name the same rank.
class PeerMonitor {
 public:
  PeerMonitor(PeerMemory& memory, std::vector<ControlBlock> blocks);

  /// Blocks until ready(): spins, then parks. awaited() lists the ranks that this rank needs; it parks for the first.
  ///
  /// Errors    PeerLost if one of them has left, or any rank has died; the error that another rank reports; Timeout if
  ///           the deadline passes, naming the rank at the end of the chain of waiting ranks.
  void block_until(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                   Deadline deadline, const PendingOp& op);

  /// To notify peers after a change that they may wait for.
  const Doorbell& doorbell() const { return doorbell_; }

  /// Marks this rank as left, unless the group has failed; peers that still need it fail. Does not wait.
  void leave();
  GroupFailure& failure() { return failure_; }

 private:
  void check_peers(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                   const std::vector<bool>& watched, bool all, const PendingOp& op);
  std::vector<bool> watched(const std::vector<int>& awaited, std::chrono::nanoseconds interval, bool late);
  void throw_if_peer_died(const PendingOp& op);
  [[noreturn]] void throw_timeout(const std::vector<int>& awaited, const PendingOp& op);
  int failed_rank_of(const std::vector<int>& awaited) const;
  int end_of_wait_chain(int peer) const;
  ControlBlock::Status& status(int rank) const { return blocks_[static_cast<std::size_t>(rank)].status(); }

  PeerMemory& memory_;
  std::vector<ControlBlock> blocks_;
  int rank_;
  Doorbell doorbell_;
  Deadline::Clock::time_point next_liveness_check_{};
  int next_watched_;       // where the next check of other ranks begins
  bool notified_ = false;  // since the last check of all ranks
  GroupFailure failure_;
};

}  // namespace gradring::comm
