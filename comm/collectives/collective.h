// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/collectives/schedule.h"
#include "comm/transport/transport.h"
#include "kernels/runtime/trace_track.h"

namespace gradring::comm {

/// A schedule and the range that it runs on.
struct CollectiveSpec {
  const Schedule* schedule = nullptr;
  SegmentRange range;
  std::size_t chunk_bytes = 0;  ///< largest payload of one move; 0 means no limit
  int root = kNoRoot;
  std::uint64_t number = 0;              ///< sequence number of the collective in its group
  kernels::TraceTrack* trace = nullptr;  ///< where it is recorded; null: nowhere
};

/// Records one collective and its steps on a track, as the CPU sees them: a step lasts until the next one is posted.
///
/// Threads   the collective's.
class CollectiveTrace {
 public:
  /// A null track, and one that is not recording, ignores all calls.
  explicit CollectiveTrace(kernels::TraceTrack* track) : track_(track && track->recording() ? track : nullptr) {}

  void begin(std::string_view operation, std::uint64_t number, std::size_t bytes);
  void step(const Step& step);
  void end();

 private:
  void end_step(std::int64_t now);

  kernels::TraceTrack* track_;
  kernels::TraceEvent collective_;
  kernels::TraceEvent step_;  // its begin is 0 before the first
};

/// One running collective. It posts the steps of its schedule in order, each as soon as the step before has received
/// its data. It never waits; its driver does: a CPU stream blocks in Transport::wait, a CUDA stream has nothing to wait
/// for.
///
/// Threads   one thread at a time; the transport must outlive it.
class Collective {
 public:
  Collective(const CollectiveSpec& spec, Transport& transport);

  /// Advances as far as possible without waiting. True when the collective is done: this rank's range holds its result
  /// and no peer reads it any more.
  bool advance();

 private:
  void post_next();

  CollectiveSpec spec_;
  Extent extent_;
  Transport& transport_;
  std::size_t steps_;
  std::size_t posted_ = 0;
  CollectiveTrace trace_;
};

/// Advances the collective until it is done, and waits in between.
///
/// Errors    as Transport: PeerLost, Timeout, Desync.
void drive(Collective& collective, Transport& transport, Deadline deadline);

}  // namespace gradring::comm
