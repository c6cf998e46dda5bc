// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "comm/transport/group_failure.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// A transport of a process group, and whether a thread uses it now. The channels of a group fail together. A failure
/// in one is announced in the other at once, by the thread that found it or by the one that uses the other.
///
/// Threads   safe; the transport is used by one thread at a time (Use).
class Channel {
 public:
  explicit Channel(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  Transport& operator*() const { return *transport_; }
  Transport* operator->() const { return transport_.get(); }

  /// Both channels fail together from now on. `first` must outlive them.
  static void fail_together(Channel& one, Channel& other, FirstFailure& first);

  /// A thread's use of the transport.
  class Use {
   public:
    /// Errors    the failure of the group; InvalidArgument with `advice` if a thread uses the transport.
    Use(Channel& channel, std::string_view advice);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Channel& channel_;
  };

 private:
  void announce_failure();

  std::unique_ptr<Transport> transport_;
  std::atomic<bool> in_use_{false};
  FirstFailure* first_ = nullptr;  // constant once the group exists
  Channel* other_ = nullptr;       // likewise
};

}  // namespace gradring::comm
