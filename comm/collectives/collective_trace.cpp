// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective_trace.h"

namespace gradring::comm {
namespace {

using kernels::TraceCategory;
using kernels::TraceTrack;

constexpr std::int64_t kNoPeer = -1;
constexpr std::int64_t kSeveralPeers = -2;

void name_peer(std::int64_t& peer, int rank) { peer = peer == kNoPeer || peer == rank ? rank : kSeveralPeers; }

}  // namespace

void CollectiveTrace::begin(std::string_view operation, std::uint64_t number, std::size_t bytes) {
  if (!track_) return;
  collective_ = {.category = TraceCategory::collective,
                 .name = operation.data(),  // of a literal
                 .begin = TraceTrack::now(),
                 .numbers = {static_cast<std::int64_t>(number), static_cast<std::int64_t>(bytes)}};
}

void CollectiveTrace::step(const Step& step) {
  if (!track_) return;
  const std::int64_t now = TraceTrack::now();
  end_step(now);
  std::int64_t to = kNoPeer, from = kNoPeer;
  std::size_t elements = 0;
  for (const Move& move : step.moves) {
    name_peer(is_outgoing(move) ? to : from, move.peer);
    if (is_outgoing(move)) elements += move.slice.elements;
  }
  const std::size_t bytes = elements * size_of(step.range.dtype);
  step_ = {.category = TraceCategory::transfer,
           .name = step.operation.data(),
           .begin = now,
           .numbers = {static_cast<std::int64_t>(step.index), static_cast<std::int64_t>(bytes), to, from}};
}

void CollectiveTrace::end() {
  if (!track_) return;
  collective_.end = TraceTrack::now();
  end_step(collective_.end);
  track_->add(collective_);
}

void CollectiveTrace::end_step(std::int64_t now) {
  if (step_.begin == 0) return;
  step_.end = now;
  track_->add(step_);
}

}  // namespace gradring::comm
