// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "comm/transport/tcp/connection.h"
#include "comm/transport/tcp/mesh.h"
#include "comm/transport/tcp/roll_call.h"
#include "comm/transport/tcp/tcp_segment.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// The transport of ranks that are connected by sockets. A send is queued when its step is posted, and goes to the system
/// from where it lies; a receive goes straight to where it belongs; a receive_add passes through a scratch that stays in
/// a core's cache. A rank may post on while what it sent before is still in its queue: many messages are under way, and
/// only a write to a slice that the system has not taken yet waits.
///
/// It has no thread of its own: bytes move while some call of this class runs, and between calls as far as the system's
/// buffers reach. A rank that computes for long holds up the others only once these are full.
class TcpTransport final : public Transport {
 public:
  TcpTransport(std::vector<tcp::Peer> peers, int rank);
  /// Tells the others that this rank has left; waits for nobody.
  ~TcpTransport() override;

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(connections_.size()); }
  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override;
  void submit(kernels::Stream& stream, std::function<void()> collective) override;
  void enqueue(const Step& step) override;
  Progress poll() override;
  void wait(Deadline deadline) override;

 private:
  /// A receive or receive_add of the newest step, as far as it has come.
  struct Arrival {
    Move move;
    bool begun = false;      // its head was found, and fits
    int held_up_by = -1;     // the peer to whom its slice is still to be sent
    std::size_t placed = 0;  // bytes, all of whole elements if they are added
    std::array<std::byte, 8> fraction{};
    std::size_t fraction_bytes = 0;  // of an element of which the rest has not come yet
  };

  bool advance(Arrival& arrival);
  bool begin(Arrival& arrival);
  std::size_t place(Arrival& arrival);
  std::size_t add(Arrival& arrival);
  bool is_complete(const Arrival& arrival) const;
  std::byte* target(const Move& move) const;
  std::size_t bytes_of(const Move& move) const;
  MessageHeader header_of(const Move& move) const;

  bool has_announced(int peer, std::size_t bytes);
  const tcp::Frame* next_data(int peer);
  void flush();
  void block(const std::vector<int>& awaited, Deadline deadline);
  bool sleep(std::chrono::nanoseconds longest);
  bool hear_buffered();
  bool is_receiving_from(int peer) const;
  std::vector<int> awaited() const;
  bool owes_somebody() const;
  void say_waiting(const std::vector<int>& awaited);
  void note_progress();
  void say_farewell(Membership reason, int culprit);
  tcp::Connection& connection(int peer) { return connections_[static_cast<std::size_t>(peer)]; }

  int rank_;
  std::vector<tcp::Connection> connections_;  // by rank; this rank's own leads nowhere
  tcp::RollCall roll_;
  std::vector<std::vector<std::uint64_t>> announced_;  // by rank: the sizes of the segments that it came to allocate
  std::size_t segments_ = 0;                           // allocated so far
  std::unique_ptr<std::byte[]> scratch_;

  Step step_;
  const TcpSegment* segment_ = nullptr;  // of step_
  std::vector<Arrival> arrivals_;        // of step_, those that are not complete
  Errand errand_;
  Deadline::Clock::time_point moved_;  // when something last came, or was asked for
  Deadline::Clock::time_point told_;   // when this rank last told the others that it waits
  int told_of_ = -1;                   // for whom
};

}  // namespace gradring::comm
