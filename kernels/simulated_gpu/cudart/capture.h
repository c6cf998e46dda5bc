// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kernels/simulated_gpu/cudart/counting.h"
#include "kernels/simulated_gpu/cudart/objects.h"

namespace gradring::simulated_gpu {

/// What a graph consists of: work, and for each piece the others that it is behind.
struct Recipe {
  struct Node {
    StreamWork work;         ///< guarded; performed at every launch
    std::size_t branch = 0;  ///< the captured stream that it comes from
    Frontier after;
  };
  int device = 0;
  std::size_t branches = 0;
  std::vector<Node> nodes;
};

/// One capture, shared by the streams that joined it and the events that were recorded in it.
///
/// Threads   the runtime's lock guards it.
class Capture {
 public:
  /// Begins with `origin`.
  Capture(Stream& origin, cudaStreamCaptureMode mode);

  bool is_origin(const Stream& stream) const { return origin_ == &stream; }
  bool is_valid() const { return broken_.empty(); }
  bool has_ended() const { return ended_; }
  /// Whether calls of all threads may break it.
  bool is_global() const { return mode_ == cudaStreamCaptureModeGlobal; }
  /// Whether an unsafe call of this thread breaks it.
  bool forbids_this_thread() const;
  /// Whether only this thread may end it, and which that is.
  bool may_end_here() const;

  /// Nothing is captured any more; `why` is for later errors.
  void invalidate(const std::string& why);
  /// Errors    Misuse if it was invalidated.
  void require_valid() const;

  /// The same for a new stream, or one that is in it: its next work is behind `event`, too.
  void join(Stream& stream, const Event& event);
  /// A stream that is destroyed.
  void leave(Stream& stream);
  void add(Stream& stream, StreamWork work);

  /// Releases its streams.
  ///
  /// Errors    Misuse if it was invalidated, or work of a stream is not joined with that of the first.
  Recipe end();

 private:
  std::size_t unjoined() const;

  Stream* origin_;
  std::thread::id thread_ = std::this_thread::get_id();
  cudaStreamCaptureMode mode_;
  std::map<Stream*, std::size_t> branches_;  // streams that joined
  std::string broken_;                       // why it was invalidated; empty: it was not
  bool ended_ = false;
  Recipe recipe_;
};

}  // namespace gradring::simulated_gpu
