// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/transport/mapped/mailboxes.h"
#include "comm/transport/mapped/mapped_segment.h"
#include "comm/transport/mapped/peer_memory.h"
#include "comm/transport/mapped/peer_watch.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// The transport of ranks that can read each other's memory, be they threads or processes. A receiver reads the
/// sender's slice where it lies: no byte is copied on the way, and no lock is taken.
///
/// A send is made when the slice is published in the outbox, a receive when it is copied or added. A slice that was
/// sent stays untouched until its receiver has read it: later steps that would write there wait for that, and so does
/// done. A lend is published as a send is, and ends when its borrower counts it as read, having written the sum there.
class MappedTransport final : public Transport {
 public:
  explicit MappedTransport(std::unique_ptr<PeerMemory> memory);
  /// Tells the others that this rank has left; waits for nobody.
  ~MappedTransport() override;

  int rank() const override { return memory_->rank(); }
  int world_size() const override { return memory_->world_size(); }
  bool reaches_peers_memory() const override { return true; }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  void submit(kernels::Stream& stream, std::function<void()> collective) override;
  void enqueue(const Step& step) override;
  Progress poll() override;
  void wait(Deadline deadline) override;

 private:
  /// A slice that a peer may still be reading; or writing, if it was lent.
  struct Unread {
    int peer;
    std::uint64_t message;
    const Segment* segment;
    Slice bytes;  // counted from the start of the segment
    bool lent;
  };

  bool try_move(const Move& move);
  void send(const Move& move);
  void receive(const Move& move);
  bool can_sum_lent() const;
  void sum_lent();
  const MessageHeader& expect(const Move& move);
  bool can_move(const Move& move) const { return !blocked_by(move); }
  std::optional<int> blocked_by(const Move& move) const;
  std::optional<int> reader_of(const Slice& slice) const;
  bool was_read(const Unread& sent) const;
  void forget_what_was_read();
  Progress progress() const;
  std::vector<int> awaited() const;

  MessageHeader header_of(const Move& move) const;
  Slice bytes_of(const Slice& slice) const;
  void wait_for_all(std::atomic<std::uint64_t> ControlBlock::Status::*counter, Deadline deadline, const Errand& errand);

  std::unique_ptr<PeerMemory> memory_;
  std::vector<ControlBlock> blocks_;
  PeerWatch watch_;
  Mailboxes mail_;
  std::size_t segments_ = 0;  // allocated so far

  Step step_;
  const MappedSegment* segment_ = nullptr;  // of step_
  std::vector<Move> open_;                  // the moves of step_ that are not made yet, but for those in
  std::vector<Move> borrowed_;              // its sum_lent, which are made together, or are made
  std::vector<Unread> unread_;              // what step_ and those before it sent
  Errand errand_;
};

}  // namespace gradring::comm
