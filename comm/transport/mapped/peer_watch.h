// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/transport/group_failure.h"
#include "comm/transport/mapped/bells.h"
#include "comm/transport/mapped/control_block.h"
#include "comm/transport/mapped/peer_memory.h"
#include "kernels/runtime/deadline.h"

namespace gradring::comm {

/// How a rank waits for its peers, and how it learns that waiting is in vain. A rank that fails says why, and whom it
/// blames, in its control block: the others fail with it and blame the same rank, not each other.
class PeerWatch {
 public:
  PeerWatch(PeerMemory& memory, std::vector<ControlBlock> blocks);

  /// Blocks until ready(): looks for a moment, then sleeps. awaited() lists the ranks that it hangs on: it sleeps for
  /// the first.
  ///
  /// Errors    PeerLost if one of them has left, or any rank has died; whatever another rank has failed with; Timeout
  ///           if the deadline passes, naming the rank at the end of the line of those who wait for each other.
  void block_until(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                   Deadline deadline, const Errand& errand);

  /// To be called after changing what peers may wait for.
  const Bells& bells() const { return bells_; }

  /// This rank will do no more; a peer that needs it still fails. Does not wait.
  void leave();
  /// Breaks the group: tells the others, and throws Desync.
  [[noreturn]] void report_desync(int peer, const std::string& message, const Errand& errand) {
    failure_.report_desync(peer, message, errand);
  }
  /// Throws again what broke the group, if something did.
  void refuse_if_broken() const { failure_.refuse_if_broken(); }

 private:
  void look_after(const std::function<bool()>& ready, const std::function<std::vector<int>()>& awaited,
                  const Errand& errand);
  void blame_the_dead(const Errand& errand);
  [[noreturn]] void time_out(const std::vector<int>& awaited, const Errand& errand);
  int last_in_line(int peer) const;
  ControlBlock::Status& status(int rank) const { return blocks_[static_cast<std::size_t>(rank)].status(); }

  PeerMemory& memory_;
  std::vector<ControlBlock> blocks_;
  int rank_;
  Bells bells_;
  Deadline::Clock::time_point next_roll_call_{};  // when to ask again who has died
  GroupFailure failure_;
};

}  // namespace gradring::comm
