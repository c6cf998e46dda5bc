// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/transports/tcp/connection.h"
#include "kernels/base/deadline.h"

namespace gradring::comm::tcp {

/// Finds which rank a timeout names: the one at the end of the chain of waiting ranks. This rank waits for X, X for Y,
/// and so on, to a rank that does not answer for whom it waits, because it is busy, stopped or unreachable.
///
/// A rank sends nothing in the first half of a wait. Then it asks one rank of the chain after the other, and again when
/// half of the remaining time has passed, because the chain may have changed. So waiting costs no messages, and a rank
/// on a full host has seconds to answer.
///
/// Threads   one thread at a time.
class WaitChain {
 public:
  using Send = std::function<void(int peer, const Frame& frame)>;
  /// `send` sends a frame to a peer, and does not wait.
  WaitChain(int rank, int world_size, Send send) : rank_(rank), world_size_(world_size), send_(std::move(send)) {}

  /// Records an `ask` or `waiting` frame of a peer; ignores others.
  void record(int peer, const Frame& frame);
  /// To be called whenever this rank blocks, which it does since `since`: answers, and asks if that is due.
  void advance(const std::vector<int>& awaited, Deadline::Clock::time_point since, Deadline deadline);
  /// Whether it is time for advance to ask.
  bool due(const std::vector<int>& awaited, Deadline::Clock::time_point since, Deadline deadline) const;
  /// This rank has made progress.
  void reset() { first_ = -1; }
  /// The end of the chain as far as it is known, or the first of `awaited`; -1 if none is awaited.
  int end(const std::vector<int>& awaited) const;

 private:
  struct Question {
    int peer = -1;
    std::uint64_t number = 0;
  };
  void ask(int peer);

  int rank_;
  int world_size_;
  Send send_;
  std::vector<Question> received_;                     // unanswered, one of each peer
  int first_ = -1;                                     // where the chain begins; -1: this rank does not search
  int end_ = -1;                                       // the rank that was asked last
  int length_ = 0;                                     // ranks asked
  std::uint64_t asked_ = 0;                            // number of the last question
  std::chrono::nanoseconds remaining_at_search_ = {};  // until the deadline
};

}  // namespace gradring::comm::tcp
