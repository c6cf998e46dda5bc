// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "comm/transport/segment.h"
#include "kernels/base/deadline.h"
#include "kernels/runtime/stream.h"

namespace gradring::comm {

class FirstFailure;

/// Errors    InvalidArgument if the rank is not one of a world of `world_size`.
void check_rank(int rank, int world_size);

/// One rank's part of one transfer with one peer. In the same step a send matches a receive or receive_add of the same
/// slice on its peer, and an expose matches a reduce_exposed.
///
/// expose: the peer may read and write the slice until it is done with it; then the slice holds the sum.
/// reduce_exposed: the slices that peers expose are summed in the order of the step's moves, this rank's own part last,
/// and the sum is written to every part in one pass. All reduce_exposed of a step name one slice. Both need a transport
/// that reaches its peers' memory.
struct Move {
  enum class Kind : std::uint8_t { send, receive, receive_add, expose, reduce_exposed };
  Kind kind = Kind::send;
  int peer = 0;
  Slice slice;  ///< relative to the start of the collective's range

  bool operator==(const Move&) const = default;
};

/// Whether the move offers a slice to the peer: send or expose.
constexpr bool is_outgoing(const Move& move) {
  return move.kind == Move::Kind::send || move.kind == Move::Kind::expose;
}

/// Whether the move accesses a peer's memory for writing: expose or reduce_exposed.
constexpr bool is_direct(const Move& move) {
  return move.kind == Move::Kind::expose || move.kind == Move::Kind::reduce_exposed;
}

/// How a collective moves its data. Ranks that choose differently are out of sync.
enum class Algorithm : std::uint8_t { ring, direct, chain, dissemination, doubling, tree };

std::string_view name_of(Algorithm algorithm);

/// The root of a collective that has none.
constexpr int kNoRoot = -1;

/// Moves of one rank that may run concurrently. No two of them may touch the same elements, except that two sends may
/// read them, and that all reduce_exposed name the same slice. At most one goes to each peer and one comes from it, so
/// that a message can be told from its sender. All but `range` and `moves` is equal on all ranks, and of the range its
/// place and size.
struct Step {
  SegmentRange range;
  std::vector<Move> moves;
  std::string_view operation;  ///< a literal such as "all_reduce"
  Algorithm algorithm = Algorithm::ring;
  int root = kNoRoot;
  std::uint64_t collective = 0;  ///< sequence number of the collective in its group
  std::size_t index = 0;         ///< of the step in the collective's schedule
};

/// The state of the newest step.
enum class Progress : std::uint8_t {
  pending,   ///< data is still to arrive
  received,  ///< all data has arrived and the next step may be posted; sent slices must not be overwritten yet
  done,      ///< as received, and everything that this and earlier steps sent may be overwritten
};

/// An all-reduce of the transport's library, to compare ours with.
class VendorAllReduce {
 public:
  /// range = sum of all ranks' ranges, in an order that the library chooses; bit-identical on all ranks. `number` is
  /// the sequence number of the collective.
  ///
  /// Order     enqueued on `stream`; returns at once.
  /// Errors    as Transport.
  virtual void all_reduce(const SegmentRange& range, std::uint64_t number, kernels::Stream& stream) = 0;

 protected:
  ~VendorAllReduce() = default;
};

/// Moves bytes between the ranks of a group. Schedules, the executor and the process group are written once for all
/// transports.
///
/// On the CPU, `submit` enqueues the collective as work of the stream, and steps are completed by polling in the thread
/// that runs the stream. On a GPU, the stream orders the work: `submit` runs the collective at once, `enqueue` puts one
/// group of sends and receives and then the add kernel on the stream, and `poll` returns done. submit, enqueue and poll
/// never wait for a peer, except to connect to it for the first time.
///
/// Order     all ranks post the same collectives, in the same order, on one stream at a time. A step may be posted when
///           the step before it is received or done.
/// Threads   one thread at a time.
/// Errors    PeerLost, Timeout, Desync; after one of them every later call throws it again.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Whether a rank can read and write its peers' memory, so that schedules may expose slices.
  virtual bool reaches_peers_memory() const { return false; }
  /// The recommended largest payload of one move; longer slices are sent in chunks. On a CPU two chunks fit into the
  /// second-level cache of a core, and one takes much longer than the overhead of a step.
  virtual std::size_t chunk_bytes() const { return 256 * 1024; }
  /// The all-reduce of the underlying library, or null.
  virtual VendorAllReduce* vendor_all_reduce() { return nullptr; }

  /// Memory that peers can reach, `bytes` on every rank, zeroed, aligned for any element type. All ranks call it in the
  /// same order with the same size. Blocks until all have called it.
  ///
  /// Errors    Timeout that names the missing ranks; Desync if the sizes differ; DeviceError if there is no memory.
  virtual std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) = 0;

  /// Runs `collective`, which posts steps, so that they take effect in the order of `stream`. Steps posted outside of
  /// submit take effect at once if the transport's memory is host memory.
  virtual void submit(kernels::Stream& stream, std::function<void()> collective) = 0;

  /// Posts a step. Never waits for a peer.
  virtual void enqueue(const Step& step) = 0;
  /// Advances the newest step as far as possible without waiting.
  virtual Progress poll() = 0;
  /// Blocks the host until poll may make progress.
  ///
  /// Errors    PeerLost, Timeout: they name the awaited peer, the operation and the step.
  virtual void wait(Deadline deadline) = 0;

  /// Runs `launch`, which enqueues a captured graph of collectives on `stream`, under the same monitoring as submit.
  /// CPU transports capture nothing.
  virtual void replay(kernels::Stream& /*stream*/, const std::function<void()>& launch) { launch(); }

  /// Throws the error that failed the group, if any. Call it after waiting for a GPU's stream, which cannot throw: its
  /// work ends early when the group fails. CPU streams throw by themselves. Safe from any thread.
  virtual void throw_if_failed() const {}

  /// From now on this transport and others that share `first`, which outlives them, fail together: each throws it
  /// from its calls and waits, and tells its peers of it.
  virtual void share_failure(FirstFailure& first) = 0;
  /// Tells the peers of the first failure, if any, at once instead of in the next call. For a transport that has no
  /// thread of its own, while no thread uses it.
  virtual void announce_failure() {}
};

}  // namespace gradring::comm
