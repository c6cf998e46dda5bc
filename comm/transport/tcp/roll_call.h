// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/transport/group_failure.h"
#include "comm/transport/tcp/frame.h"

namespace gradring::comm::tcp {

/// What a rank knows of the others from their own words and from the ends of their connections, and what it makes of it
/// when it waits in vain. A rank that fails tells all others why and whom it blames, so that they fail with it and
/// blame the same rank, not each other.
class RollCall {
 public:
  /// `tell` says farewell to all others.
  RollCall(int rank, std::vector<std::string> descriptions, GroupFailure::Tell tell);

  /// Takes note of a peer's news: a frame that is `waiting` or `farewell`.
  void hear(int peer, const Frame& frame);
  /// Takes note that nothing will come from a peer any more, and what the system said about it.
  void lose(int peer, int error_number);

  /// Throws if waiting is in vain: whatever another rank has failed with; PeerLost if any rank went without a word, or
  /// one of those that this rank hangs on has left.
  void judge(const std::vector<int>& awaited, const Errand& errand);
  /// Throws Timeout, naming the rank at the end of the line of those who wait for each other.
  [[noreturn]] void time_out(const std::vector<int>& awaited, const Errand& errand);
  /// Breaks the group: tells the others, and throws Desync.
  [[noreturn]] void report_desync(int peer, const std::string& message, const Errand& errand) {
    failure_.report_desync(peer, message, errand);
  }

  /// Throws again what broke the group, if something did.
  void refuse_if_broken() const { failure_.refuse_if_broken(); }
  bool broken() const { return failure_.broken(); }

 private:
  struct Standing {
    Membership membership = Membership::member;
    int culprit = -1;
    int waiting_for = -1;
    Deadline::Clock::time_point said_so;  // that it waits
    bool lost = false;
    std::string why_lost;
  };

  int last_in_line(int peer) const;
  int world_size() const { return static_cast<int>(standings_.size()); }
  const Standing& standing(int peer) const { return standings_[static_cast<std::size_t>(peer)]; }

  int rank_;
  std::vector<Standing> standings_;
  GroupFailure failure_;
};

}  // namespace gradring::comm::tcp
