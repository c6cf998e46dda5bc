// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/transport/segment.h"
#include "comm/transport/transport.h"
#include "comm/transports/mapped/mailboxes.h"
#include "comm/transports/mapped/peer_memory.h"
#include "comm/transports/mapped/peer_monitor.h"

namespace gradring::comm {

/// A segment of which every rank's part is mapped into this process.
class MappedSegment final : public Segment {
 public:
  /// `parts` holds one region per rank.
  MappedSegment(std::vector<PeerMemory::Region> parts, int rank, std::size_t bytes, std::size_t number)
      : Segment(parts[static_cast<std::size_t>(rank)].get(), bytes, number), parts_(std::move(parts)) {}

  std::byte* part_of(int rank) const { return parts_[static_cast<std::size_t>(rank)].get(); }

 private:
  std::vector<PeerMemory::Region> parts_;
};

/// The transport of ranks that can read each other's memory: threads, or processes of one host. A receiver reads the
/// sender's slice in place, without an intermediate copy and without a lock.
///
/// A send is complete when the slice is published in the outbox, a receive when the data is copied or added. Later
/// steps that write to a sent slice wait until its receiver has read it, and so does done. An exposed slice is
/// published like a sent one, and is complete when the peer has written the sum and counts it as read.
class MappedTransport final : public Transport {
 public:
  explicit MappedTransport(std::unique_ptr<PeerMemory> memory);
  /// Tells the other ranks that this rank has left. Does not wait.
  ~MappedTransport() override;

  int rank() const override { return memory_->rank(); }
  int world_size() const override { return memory_->world_size(); }
  bool reaches_peers_memory() const override { return true; }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  void submit(kernels::Stream& stream, std::function<void()> collective) override;
  void enqueue(const Step& step) override;
  Progress poll() override;
  void wait(Deadline deadline) override;
  void share_failure(FirstFailure& first) override { monitor_.failure().share(first); }
  void announce_failure() override { monitor_.failure().adopt(); }

 private:
  /// A slice that a peer may still read, or also write if it is exposed.
  struct Unread {
    int peer;
    std::uint64_t message;
    const Segment* segment;
    Slice bytes;  // relative to the start of the segment
    bool exposed;
  };

  bool try_move(const Move& move);
  void send(const Move& move);
  void receive(const Move& move);
  bool can_reduce_exposed() const;
  void reduce_exposed();
  const MessageHeader& expect(const Move& move);
  bool can_move(const Move& move) const { return !blocked_by(move); }
  std::optional<int> blocked_by(const Move& move) const;
  std::optional<int> reader_of(const Slice& slice) const;
  bool was_read(const Unread& sent) const;
  void drop_read();
  Progress progress() const;
  std::vector<int> awaited() const;

  Slice bytes_of(const Slice& slice) const;
  void wait_for_all(std::atomic<std::uint64_t> ControlBlock::Status::*counter, Deadline deadline, const PendingOp& op);

  std::unique_ptr<PeerMemory> memory_;
  std::vector<ControlBlock> blocks_;
  PeerMonitor monitor_;
  Mailboxes mailboxes_;
  std::size_t segments_ = 0;  // allocated so far

  Step step_;
  const MappedSegment* segment_ = nullptr;  // of step_
  std::vector<Move> pending_;               // incomplete moves of step_, except reduce_exposed
  std::vector<Move> reductions_;            // incomplete reduce_exposed moves of step_; they run together
  std::vector<Unread> unread_;              // sent by step_ and earlier steps
  PendingOp op_;
};

}  // namespace gradring::comm
