// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kernels/runtime/trace_track.h"

namespace gradring::kernels {

/// What devices executed while a DeviceTrace recorded, on the host's steady clock.
struct DeviceActivities {
  /// A timeline whose events do not overlap, in their order.
  struct Track {
    std::string name;  ///< "GPU 0 stream 7"
    std::vector<TraceEvent> events{};
  };
  std::vector<Track> tracks{};
  std::set<std::string> names{};     ///< to which the events point
  std::vector<std::string> notes{};  ///< what is missing or uncertain, for people
};

/// Records the kernels, copies and clearings that the GPUs of this process execute, also those of CUDA graphs.
///
/// Threads   one.
class DeviceTrace {
 public:
  virtual ~DeviceTrace() = default;
  /// Begins.
  ///
  /// Errors    DeviceError if it is not possible, for example because a profiler is attached.
  virtual void start() = 0;
  /// Ends. The host must have waited for all enqueued work, otherwise what is not done is missing, with a note.
  ///
  /// Errors    DeviceError if the records cannot be read.
  virtual DeviceActivities stop() = 0;
};

}  // namespace gradring::kernels
