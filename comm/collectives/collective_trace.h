// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/transport/transport.h"
#include "kernels/runtime/trace_track.h"

namespace gradring::comm {

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

}  // namespace gradring::comm
