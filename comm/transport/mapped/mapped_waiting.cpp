// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "comm/transport/mapped/mapped_transport.h"

// The progress of a step, and the ranks that it waits for.

namespace gradring::comm {
namespace {

bool overlap(const Slice& a, const Slice& b) {
  return a.offset < b.offset + b.elements && b.offset < a.offset + a.elements;
}

}  // namespace

Progress MappedTransport::progress() const {
  const auto exposed = [](const Unread& slice) { return slice.exposed; };
  if (!pending_.empty() || !reductions_.empty() || std::ranges::any_of(unread_, exposed)) return Progress::pending;
  return unread_.empty() ? Progress::done : Progress::received;
}

void MappedTransport::wait(Deadline deadline) {
  monitor_.throw_if_failed();
  const auto ready = [this] {
    if (pending_.empty() && reductions_.empty())
      return std::ranges::any_of(unread_, [this](const Unread& sent) { return was_read(sent); });
    return can_reduce_exposed() || std::ranges::any_of(pending_, [this](const Move& move) { return can_move(move); });
  };
  monitor_.block_until(
      ready, [this] { return awaited(); }, deadline, op_);
}

std::vector<int> MappedTransport::awaited() const {
  std::vector<int> peers;
  for (const std::vector<Move>* moves : {&pending_, &reductions_})
    for (const Move& move : *moves)
      if (const std::optional<int> peer = blocked_by(move)) peers.push_back(*peer);
  if (!peers.empty()) return peers;
  for (const Unread& sent : unread_)
    if (!was_read(sent)) peers.push_back(sent.peer);
  return peers;
}

/// The rank that this move waits for; empty if it can run now.
std::optional<int> MappedTransport::blocked_by(const Move& move) const {
  const bool peer_is_ready = is_outgoing(move) ? mailboxes_.can_send(move.peer) : mailboxes_.has_message(move.peer);
  if (!peer_is_ready) return move.peer;
  return move.kind == Move::Kind::send ? std::nullopt : reader_of(move.slice);
}

/// A rank that may still read the slice.
std::optional<int> MappedTransport::reader_of(const Slice& slice) const {
  const Slice target = bytes_of(slice);
  const auto reader = std::ranges::find_if(unread_, [&](const Unread& sent) {
    return sent.segment == segment_ && overlap(sent.bytes, target) && !was_read(sent);
  });
  return reader == unread_.end() ? std::nullopt : std::optional(reader->peer);
}

bool MappedTransport::can_reduce_exposed() const {
  return !reductions_.empty() && std::ranges::all_of(reductions_, [this](const Move& move) { return can_move(move); });
}

bool MappedTransport::was_read(const Unread& sent) const { return mailboxes_.read_by(sent.peer) >= sent.message; }

void MappedTransport::drop_read() {
  std::erase_if(unread_, [this](const Unread& sent) { return was_read(sent); });
}

}  // namespace gradring::comm
