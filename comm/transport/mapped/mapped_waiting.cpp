// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "comm/transport/mapped/mapped_transport.h"

// How far a step has come, and which rank it hangs on.

namespace gradring::comm {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.offset < b.offset + b.elements && b.offset < a.offset + a.elements;
}

}  // namespace

Progress MappedTransport::progress() const {
  const auto lent = [](const Unread& slice) { return slice.lent; };
  if (!open_.empty() || !borrowed_.empty() || std::ranges::any_of(unread_, lent)) return Progress::pending;
  return unread_.empty() ? Progress::done : Progress::received;
}

void MappedTransport::wait(Deadline deadline) {
  watch_.refuse_if_broken();
  const auto ready = [this] {
    if (open_.empty() && borrowed_.empty())
      return std::ranges::any_of(unread_, [this](const Unread& sent) { return was_read(sent); });
    return can_sum_lent() || std::ranges::any_of(open_, [this](const Move& move) { return can_move(move); });
  };
  watch_.block_until(
      ready, [this] { return awaited(); }, deadline, errand_);
}

std::vector<int> MappedTransport::awaited() const {
  std::vector<int> peers;
  for (const std::vector<Move>* moves : {&open_, &borrowed_})
    for (const Move& move : *moves)
      if (const std::optional<int> peer = blocked_by(move)) peers.push_back(*peer);
  if (!peers.empty()) return peers;
  for (const Unread& sent : unread_)
    if (!was_read(sent)) peers.push_back(sent.peer);
  return peers;
}

/// The rank that must do something before this move can be made; none if it can be made now.
std::optional<int> MappedTransport::blocked_by(const Move& move) const {
  const bool peer_is_ready = gives(move) ? mail_.can_send(move.peer) : mail_.has_message(move.peer);
  if (!peer_is_ready) return move.peer;
  return move.kind == Move::Kind::send ? std::nullopt : reader_of(move.slice);
}

/// A rank that may still be reading from there.
std::optional<int> MappedTransport::reader_of(const Slice& slice) const {
  const Slice target = bytes_of(slice);
  const auto reader = std::ranges::find_if(unread_, [&](const Unread& sent) {
    return sent.segment == segment_ && overlap(sent.bytes, target) && !was_read(sent);
  });
  return reader == unread_.end() ? std::nullopt : std::optional(reader->peer);
}

bool MappedTransport::can_sum_lent() const {
  return !borrowed_.empty() && std::ranges::all_of(borrowed_, [this](const Move& move) { return can_move(move); });
}

bool MappedTransport::was_read(const Unread& sent) const { return mail_.read_by(sent.peer) >= sent.message; }

void MappedTransport::forget_what_was_read() {
  std::erase_if(unread_, [this](const Unread& sent) { return was_read(sent); });
}

}  // namespace gradring::comm
