// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"

namespace gradring::comm {

class InProcessRendezvous;

/// Creates the process groups of ranks that are threads of one process.
///
/// Threads   join may be called from any thread, once per rank; groups may outlive the hub.
/// Example   tests/comm/support/ranks.h
class InProcessHub {
 public:
  /// Errors    InvalidArgument if world_size < 1.
  InProcessHub(int world_size, ProcessGroup::Duration timeout);
  ~InProcessHub();

  int world_size() const;
  /// The group of `rank`. Blocks until all ranks have joined.
  ///
  /// Errors    InvalidArgument if the rank is outside the world or has joined before; Timeout that names the missing
  ///           ranks.
  std::unique_ptr<ProcessGroup> join(int rank);

 private:
  std::shared_ptr<InProcessRendezvous> data_;
  std::shared_ptr<InProcessRendezvous> control_;
  ProcessGroup::Duration timeout_;
};

}  // namespace gradring::comm
