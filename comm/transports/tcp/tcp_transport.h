// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "comm/transport/transport.h"
#include "comm/transports/tcp/connection.h"
#include "comm/transports/tcp/failure_detector.h"
#include "comm/transports/tcp/mesh.h"
#include "comm/transports/tcp/socket_poll.h"
#include "comm/transports/tcp/wait_chain.h"

namespace gradring::comm {

/// The transport of ranks that are connected by sockets. A send is queued when its step is posted and sent from its
/// slice; a receive writes directly to its slice; a receive_add goes through a scratch buffer. A rank may post steps
/// while earlier sends are queued: only a write to a slice that is still unsent waits.
///
/// It has no thread: data moves while a member function runs, and in between as far as the kernel's socket buffers
/// reach. A rank that computes for long delays its peers only when these are full.
class TcpTransport final : public Transport {
 public:
  TcpTransport(std::vector<tcp::Peer> peers, int rank);
  /// Tells the other ranks that this rank has left. Does not wait.
  ~TcpTransport() override;

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(connections_.size()); }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  void submit(kernels::Stream& stream, std::function<void()> collective) override;
  void enqueue(const Step& step) override;
  Progress poll() override;
  void wait(Deadline deadline) override;
  void share_failure(FirstFailure& first) override { detector_.failure().share(first); }
  void announce_failure() override { detector_.failure().adopt(); }

 private:
  /// An incomplete receive or receive_add of the newest step.
  struct PendingReceive {
    Move move;
    bool begun = false;                  // its header has arrived and matches
    int blocked_by = -1;                 // the peer to which its slice is still unsent
    std::size_t written = 0;             // bytes; whole elements if they are added
    std::array<std::byte, 8> partial{};  // the received part of an incomplete element
    std::size_t partial_bytes = 0;
  };

  /// A rank's allocations. It announces one before this rank has returned from the one before, at most.
  struct Announced {
    std::uint64_t count = 0;
    std::array<std::uint64_t, 2> bytes{};  // of the last two, by their numbers modulo 2
  };

  bool advance(PendingReceive& receive);
  bool begin(PendingReceive& receive);
  std::size_t receive_in_place(PendingReceive& receive);
  std::size_t receive_and_add(PendingReceive& receive);
  bool is_complete(const PendingReceive& receive) const;
  std::byte* target(const Move& move) const;
  std::size_t bytes_of(const Move& move) const;

  bool take_announcement(int peer, const tcp::Frame& frame);
  bool has_announced(int peer, std::size_t bytes);
  const tcp::Frame* next_data(int peer);
  void flush();
  void block(const std::vector<int>& awaited, Deadline deadline);
  bool wait_for_events(const std::vector<int>& awaited, Deadline deadline);
  bool read_buffered(bool stalled);
  bool is_receiving_from(int peer) const;
  std::vector<int> awaited() const;
  bool has_unsent_messages() const;
  void note_progress();
  void send_goodbye(GroupState reason, int failed_rank);
  tcp::Connection& connection(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  int rank_;
  std::vector<tcp::Connection> connections_;  // by rank; this rank's own is closed
  tcp::FailureDetector detector_;
  tcp::WaitChain wait_chain_;
  tcp::SocketPoll sockets_;
  std::vector<Announced> announced_;  // by rank
  std::size_t segments_ = 0;          // allocated so far
  std::unique_ptr<std::byte[]> scratch_;

  Step step_;
  std::vector<PendingReceive> receives_;  // the incomplete ones of step_
  PendingOp op_;
  Deadline::Clock::time_point last_progress_;  // or the start of the operation
};

}  // namespace gradring::comm
