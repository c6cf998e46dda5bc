// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/mailboxes.h"

#include <utility>

namespace gradring::comm {

// The counters are sequentially consistent, as are `parked` and `doorbell`: a rank sets `parked` and then reads a
// counter once more, its peer changes the counter and then reads `parked`. So at least one of them sees the other's
// write.

Mailboxes::Mailboxes(std::vector<ControlBlock> blocks, int rank)
    : blocks_(std::move(blocks)), rank_(rank), sent_(blocks_.size()), taken_(blocks_.size()) {}

std::uint64_t Mailboxes::send(int peer, const MessageHeader& header) {
  ControlBlock::Outbox& outbox = blocks_[index(rank_)].outbox(peer);
  std::uint64_t& sent = sent_[index(peer)];
  outbox.slots[sent % ControlBlock::kSlots] = header;
  outbox.published.store(++sent);
  return sent;
}

const MessageHeader& Mailboxes::front(int peer) const {
  return outbox_from(peer).slots[taken_[index(peer)] % ControlBlock::kSlots];
}

void Mailboxes::take(int peer) { blocks_[index(rank_)].inbox(peer).consumed.store(++taken_[index(peer)]); }

}  // namespace gradring::comm
