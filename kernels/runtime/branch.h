// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// A second stream for work that may run beside that of a first one. Recorded together, they are branches of a graph.
///
///   stream   ... fork | input gradient  | join ...
///                    \                 /
///   branch             weight gradient
///
/// Threads   one. The device must outlive it, and it the work of the joined stream.
/// Example   tests/kernels/runtime/branch_test.cpp
class Branch {
 public:
  explicit Branch(Device& device)
      : forked_at_(device.make_event()),
        joined_at_(device.make_event()),
        branch_(device.make_stream(StreamMode::asynchronous)) {}

  /// The branch, whose work from now on starts when all work that `stream` has now is done. May be called again.
  Stream& fork(Stream& stream) {
    stream.record(*forked_at_);
    branch_->enqueue_wait(*forked_at_);
    branch_->observe_launches(stream.launch_observer());
    is_forked_ = true;
    return *branch_;
  }
  /// Makes `stream` wait for the branch, if it was forked since the last join.
  void join(Stream& stream) {
    if (!std::exchange(is_forked_, false)) return;
    branch_->record(*joined_at_);
    stream.enqueue_wait(*joined_at_);
  }

 private:
  std::unique_ptr<Event> forked_at_, joined_at_;
  std::unique_ptr<Stream> branch_;  // last: its work uses the events
  bool is_forked_ = false;
};

/// The branch, forked from the stream; without one the stream itself.
inline Stream& beside(Stream& stream, Branch* branch) { return branch ? branch->fork(stream) : stream; }

}  // namespace gradring::kernels
