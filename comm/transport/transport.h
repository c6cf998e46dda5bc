// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/transport/segment.h"
#include "comm/transport/vendor_all_reduce.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/stream.h"

namespace gradring::comm {

/// What one rank does with one slice and one peer. A send on one rank meets a receive or a receive_add of as many
/// elements on its peer, in the same step; a lend meets a sum_lent.
///
/// lend: the peer may read and write the slice until it gives it back; then the slice holds the sum. sum_lent: what
/// peers lend of a slice is summed in the order of the step's moves, this rank's own part last, and the sum is written
/// into every part, here and there, in one pass. All sum_lent of a step name one slice. These two are for transports
/// that reach their peers' memory.
struct Move {
  enum class Kind : std::uint8_t { send, receive, receive_add, lend, sum_lent };
  Kind kind = Kind::send;
  int peer = 0;
  Slice slice;  ///< counted from the start of the collective's range

  bool operator==(const Move&) const = default;
};

/// Whether the move offers a slice to the peer: it is a send or a lend.
constexpr bool gives(const Move& move) { return move.kind == Move::Kind::send || move.kind == Move::Kind::lend; }

/// Whether the move lends a slice or sums what is lent.
constexpr bool lends(const Move& move) { return move.kind == Move::Kind::lend || move.kind == Move::Kind::sum_lent; }

/// A set of moves that one rank makes as one unit: all may go on at the same time, so no two of them may touch the same
/// elements, except that two sends may read them, and that all sum_lent name the same.
struct Step {
  SegmentRange range;
  std::vector<Move> moves;
  std::string_view operation;    ///< a literal: "all_reduce", ...; for messages, and equal on all ranks
  std::uint64_t collective = 0;  ///< how many collectives the group began before this one; equal on all ranks
  std::size_t index = 0;         ///< which step of the collective's schedule
};

/// How far the newest step has come.
enum class Progress : std::uint8_t {
  pending,   ///< something has still to arrive
  received,  ///< all that it receives is there; the next step may be posted; what it sends must not be overwritten yet
  done,      ///< the same, and all that it and earlier steps send may be overwritten
};

/// Moves bytes between the ranks of a group. Everything above it (schedules, the executor, the process group) is
/// written once for all transports.
///
/// Two kinds exist. On the CPU a step is posted and then completed by polling, in whichever thread runs the stream's
/// work: there `submit` enqueues the collective as work of the stream. On a GPU the stream itself orders the work:
/// `submit` runs the collective at once, `enqueue` puts one group of sends and receives and then the add kernel on the
/// stream, and poll says done. In a simulator poll asks a virtual clock. None of them ever waits for a peer inside submit,
/// enqueue or poll, except for a first connection to it.
///
/// Order     all ranks post the same collectives, in the same order, on one stream at a time. A step may be posted when
///           the one before it is received or done.
/// Threads   one thread at a time.
/// Errors    PeerLost, Timeout, Desync; after one of them every later call throws it again.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Whether a rank can read and write its peers' memory, so that schedules may lend slices.
  virtual bool reaches_peers_memory() const { return false; }
  /// Most bytes that one move should carry; longer slices travel in chunks. Where a core moves them, a chunk and its
  /// neighbour's fit into the core's second-level cache together, and are long against the cost of a step.
  virtual std::size_t chunk_bytes() const { return 256 * 1024; }
  /// The all-reduce of the library underneath; null where there is none.
  virtual VendorAllReduce* vendor_all_reduce() { return nullptr; }

  /// Memory that peers can reach, `bytes` on every rank, zeroed, aligned for any element type. All ranks call it in the
  /// same order with the same size; blocks the host until all have.
  ///
  /// Errors    Timeout that names who did not come; Desync if the sizes differ; DeviceError if there is no memory.
  virtual std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) = 0;

  /// Runs `collective`, which posts steps, so that these take effect in the order of `stream`. Steps that are posted
  /// outside of submit take effect at once, where the transport's memory is the host's.
  virtual void submit(kernels::Stream& stream, std::function<void()> collective) = 0;

  /// Posts a step. Never waits for a peer.
  virtual void enqueue(const Step& step) = 0;
  /// Does what can be done now for the newest step, and says how far it has come. Never waits.
  virtual Progress poll() = 0;
  /// Blocks the host until poll may have more to do.
  ///
  /// Errors    PeerLost, Timeout: names the awaited peer, the operation and the step.
  virtual void wait(Deadline deadline) = 0;

  /// Runs `launch`, which enqueues collectives once more that were captured into a graph, on `stream`. They are watched
  /// like those that submit runs. On the CPU nothing can be captured.
  virtual void replay(kernels::Stream& /*stream*/, const std::function<void()>& launch) { launch(); }

  /// Throws what broke the group, if something did. For who has waited until a stream was done: a GPU's stream cannot
  /// throw, it ends its work early when the group breaks; a CPU's throws by itself. May be called from any thread.
  virtual void refuse_if_broken() const {}
};

}  // namespace gradring::comm
