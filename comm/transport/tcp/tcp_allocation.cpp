// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::comm {

// Ranks meet once in an allocation: each tells all others that it has come to it, and how many bytes it wants. Memory is
// each rank's own, so nothing else must be agreed on.

std::unique_ptr<Segment> TcpTransport::allocate(std::size_t bytes, Deadline deadline) {
  roll_.refuse_if_broken();
  std::unique_ptr<TcpSegment> segment = TcpSegment::create(bytes, segments_ + 1);
  ++segments_;
  errand_ = Errand{.operation = "allocate", .number = segments_};
  moved_ = errand_.since;
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
    if (missing.empty() && !owes_somebody()) break;
    block(missing.empty() ? awaited() : missing, deadline);
  }
  note_progress();
  return segment;
}

/// Whether a peer has come to allocate the newest segment too.
bool TcpTransport::has_announced(int peer, std::size_t bytes) {
  const auto& theirs = announced_[static_cast<std::size_t>(peer)];
  const tcp::Frame* data = next_data(peer);
  if (theirs.size() < segments_ && data)
    roll_.report_desync(
        peer,
        fmt::format("rank {} allocates {} bytes, but rank {} is in {} {}: all ranks must make the same calls, in the "
                    "same order",
                    rank_, bytes, peer, data->operation.data(), data->collective),
        errand_);
  if (theirs.size() < segments_) return false;
  if (theirs[segments_ - 1] != bytes)
    roll_.report_desync(
        peer,
        fmt::format("rank {} allocates {} bytes where rank {} allocates {}: all ranks must allocate the same, "
                    "in the same order",
                    rank_, bytes, peer, theirs[segments_ - 1]),
        errand_);
  return true;
}

}  // namespace gradring::comm
