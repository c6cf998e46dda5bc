// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::comm {

// An allocation has one barrier: each rank announces the size of its allocation to all others.

std::unique_ptr<Segment> TcpTransport::allocate(std::size_t bytes, Deadline deadline) {
  detector_.throw_if_failed();
  std::unique_ptr<TcpSegment> segment = TcpSegment::create(bytes, segments_ + 1);
  ++segments_;
  op_ = PendingOp{.operation = "allocate", .number = segments_};
  last_progress_ = op_.since;
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::allocation;
  frame.segment = segments_;
  frame.elements = bytes;
  for (int peer = 0; peer < world_size(); ++peer)
    if (peer != rank_) connection(peer).send(frame);
  for (;;) {
    flush();
    std::vector<int> missing;
    for (int peer = 0; peer < world_size(); ++peer)
      if (peer != rank_ && !has_announced(peer, bytes)) missing.push_back(peer);
    if (missing.empty() && !has_unsent_messages()) break;
    block(missing.empty() ? awaited() : missing, deadline);
  }
  note_progress();
  return segment;
}

/// Whether a peer has announced the newest segment too.
bool TcpTransport::has_announced(int peer, std::size_t bytes) {
  const auto& theirs = announced_[static_cast<std::size_t>(peer)];
  const tcp::Frame* data = next_data(peer);
  if (theirs.size() < segments_ && data)
    detector_.throw_desync(
        peer,
        fmt::format(
            "ranks are out of sync: rank {} allocates {} bytes, but rank {} is in {} {}; make the same calls in "
            "the same order on all ranks",
            rank_, bytes, peer, data->operation.data(), data->collective),
        op_);
  if (theirs.size() < segments_) return false;
  if (theirs[segments_ - 1] != bytes)
    detector_.throw_desync(
        peer,
        fmt::format("ranks are out of sync: rank {} allocates {} bytes, but rank {} allocates {}; allocate the same "
                    "sizes in the same order on all ranks",
                    rank_, bytes, peer, theirs[segments_ - 1]),
        op_);
  return true;
}

}  // namespace gradring::comm
