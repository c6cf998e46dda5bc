// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "comm/transports/mapped/control_block.h"

namespace gradring::comm {

/// One rank's messages to and from all peers: the control blocks' counters and headers as one queue per pair of ranks.
/// No member function waits. The caller notifies the peer (Doorbell::notify).
class Mailboxes {
 public:
  Mailboxes(std::vector<ControlBlock> blocks, int rank);

  /// Whether the queue to `peer` has room.
  bool can_send(int peer) const { return sent_[index(peer)] - read_by(peer) < ControlBlock::kSlots; }
  /// Publishes a message; `peer` may read its slice from now on. Returns its sequence number to this peer, from 1.
  std::uint64_t send(int peer, const MessageHeader& header);
  /// The number of messages that `peer` has read; their slices may be overwritten.
  std::uint64_t read_by(int peer) const { return blocks_[index(peer)].inbox(rank_).consumed.load(); }

  bool has_message(int peer) const { return outbox_from(peer).published.load() > taken_[index(peer)]; }
  /// The oldest message from `peer`; requires has_message.
  const MessageHeader& front(int peer) const;
  /// Counts the oldest message as read, so that the peer may overwrite its slice.
  void take(int peer);

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  ControlBlock::Outbox& outbox_from(int peer) const { return blocks_[index(peer)].outbox(rank_); }

  std::vector<ControlBlock> blocks_;
  int rank_;
  std::vector<std::uint64_t> sent_;   // to each peer
  std::vector<std::uint64_t> taken_;  // from each peer
};

}  // namespace gradring::comm
