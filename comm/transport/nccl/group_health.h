// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "comm/transport/group_failure.h"
#include "comm/transport/nccl/communicator.h"
#include "comm/transport/nccl/news_board.h"
#include "comm/transport/nccl/surroundings.h"

namespace gradring::comm::nccl {

/// Whether the group still works, for the thread that posts and the watchdog alike. When it breaks, all ranks agree through
/// the board on whom to blame, and the communicator is aborted, so that no stream waits any more. If the abort does not
/// end in time, this process does: better a process that is gone than one that hangs.
///
/// Threads   safe.
class GroupHealth {
 public:
  /// `describe` is what a person calls a peer.
  GroupHealth(int rank, GroupFailure::Describe describe, NewsBoard& board, Communicator& communicator,
              const Surroundings& surroundings);

  /// Breaks the group, unless it is broken: `blame` calls one of GroupFailure's functions, unless another rank was first.
  void fail(const Errand& errand, const std::function<void(GroupFailure&)>& blame);
  /// Takes over another rank's verdict.
  void follow(const Verdict& verdict, const Errand& errand);

  bool broken() const { return broken_.load(std::memory_order_acquire); }
  /// Throws what broke the group, if something did.
  void refuse_if_broken() const;

  /// Frees the communicator of a group that is not broken.
  void finish(std::chrono::nanoseconds patience);

 private:
  void break_down(const std::function<void(GroupFailure&)>& blame, const Errand& errand);
  void abort_or_leave(const std::string& last_words);

  int rank_;
  NewsBoard& board_;
  Communicator& communicator_;
  Surroundings surroundings_;
  std::mutex mutex_;  // held by who breaks the group
  bool follows_ = false;
  GroupFailure failure_;  // not touched any more once broken_ is set
  std::atomic<bool> broken_{false};
};

}  // namespace gradring::comm::nccl
