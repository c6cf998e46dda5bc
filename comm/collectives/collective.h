// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/collectives/schedule.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// What is to be done, and on what.
struct CollectiveSpec {
  const Schedule* schedule = nullptr;
  SegmentRange range;
  std::size_t chunk_bytes = 0;  ///< most that one move carries; 0 means no limit
  int root = 0;
  std::uint64_t number = 0;  ///< how many collectives the group began before this one
};

/// One collective under way: posts the steps of its schedule one after the other, each as soon as what the one before
/// receives is there. It never waits, so whoever drives it decides what happens in between: a CPU stream sleeps in
/// Transport::wait, a CUDA stream has nothing to wait for, a simulator moves its clock.
///
/// Threads   one thread at a time; the transport must outlive it.
class Collective {
 public:
  Collective(const CollectiveSpec& spec, Transport& transport);

  /// Goes on as far as it can without waiting. True when the collective is done: this rank's range holds its result and
  /// nobody reads it any more.
  bool advance();

 private:
  void post_next();

  CollectiveSpec spec_;
  Extent extent_;
  Transport& transport_;
  std::size_t steps_;
  std::size_t posted_ = 0;
};

/// Advances the collective until it is done, and sleeps where it cannot go on.
///
/// Errors    what the transport throws: PeerLost, Timeout, Desync.
void drive(Collective& collective, Transport& transport, Deadline deadline);

}  // namespace gradring::comm
