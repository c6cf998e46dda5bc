// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <thread>
#include <utility>

#include "kernels/simulated_gpu/cudart/objects.h"

namespace gradring::simulated_gpu {

/// The streams that exist without being created. The legacy default stream of a device and its blocking streams wait
/// for each other: its work is behind all that blocking streams have, and theirs behind all that it has. Each thread
/// has a default stream of its own, which is a blocking stream.
///
/// Threads   the runtime's lock guards it.
/// Source    CUDA Runtime API 13.0, "Stream synchronization behavior".
class DefaultStreams {
 public:
  static bool is_default(cudaStream_t handle) {
    return handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  }
  /// That of a device, and of this thread; made at its first use.
  Stream& at(cudaStream_t handle, int device, Scheduler& scheduler);

  /// Before work of `stream` is enqueued: its tail comes behind that of the streams which it must wait for.
  ///
  /// Errors    Misuse if the legacy stream would wait for a stream that is captured.
  void order(Stream& stream, Handles<Stream, cudaStream_t>& created, Scheduler& scheduler);

  /// A created stream is destroyed: later work of the legacy stream comes behind what a blocking one has enqueued.
  void leave(Stream& stream, Scheduler& scheduler);

  /// Whether work of this legacy stream would wait for a stream that is captured.
  bool waits_for_capture(const Stream& legacy, const Handles<Stream, cudaStream_t>& created) const;

  /// Calls visit(stream) for each.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (auto& [device, stream] : legacy_) visit(stream);
    for (auto& [key, stream] : per_thread_) visit(stream);
  }

 private:
  void order_legacy(Stream& legacy, Handles<Stream, cudaStream_t>& created, Scheduler& scheduler);

  std::map<int, Stream> legacy_;
  std::map<int, Scheduler::WorkPtr> left_;  ///< by device: of blocking streams that were destroyed
  std::map<std::pair<std::thread::id, int>, Stream> per_thread_;
};

}  // namespace gradring::simulated_gpu
