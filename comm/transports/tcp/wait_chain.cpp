// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/wait_chain.h"

#include <algorithm>

namespace gradring::comm::tcp {
namespace {

/// The least time that the ranks of a chain have to answer, if the wait is that long.
constexpr std::chrono::seconds kAnswerTime(3);

}  // namespace

void WaitChain::record(int peer, const Frame& frame) {
  if (frame.kind == FrameKind::ask) {
    const auto known = std::ranges::find(received_, peer, &Question::peer);
    if (known == received_.end())
      received_.push_back({peer, frame.collective});
    else
      known->number = frame.collective;
  }
  const bool answers = frame.kind == FrameKind::waiting && first_ >= 0 && peer == end_ && frame.collective == asked_;
  const int next = frame.subject;
  // A chain that leads back here, or into a circle, ends where it is.
  if (!answers || next < 0 || next >= world_size_ || next == rank_ || length_ >= world_size_) return;
  ask(next);
}

void WaitChain::advance(const std::vector<int>& awaited, Deadline::Clock::time_point since, Deadline deadline) {
  if (awaited.empty()) return;
  for (const Question& question : std::exchange(received_, {}))
    send_(question.peer, {.kind = FrameKind::waiting, .subject = awaited.front(), .collective = question.number});
  if (!due(awaited, since, deadline)) return;
  first_ = awaited.front();
  length_ = 0;
  remaining_at_search_ = deadline.remaining();
  ask(first_);
}

bool WaitChain::due(const std::vector<int>& awaited, Deadline::Clock::time_point since, Deadline deadline) const {
  if (awaited.empty()) return false;
  const std::chrono::nanoseconds remaining = deadline.remaining();
  if (first_ != awaited.front()) return Deadline::Clock::now() - since >= remaining;
  return remaining <= remaining_at_search_ / 2 && remaining >= kAnswerTime;
}

void WaitChain::ask(int peer) {
  end_ = peer;
  ++length_;
  send_(peer, {.kind = FrameKind::ask, .collective = ++asked_});
}

int WaitChain::end(const std::vector<int>& awaited) const {
  if (awaited.empty()) return -1;
  return first_ == awaited.front() ? end_ : awaited.front();
}

}  // namespace gradring::comm::tcp
