// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/process_group.h"

namespace gradring::comm {

class InProcessMeeting;

/// Makes the groups of ranks that are threads of one process.
///
/// Threads   join may be called from any thread, once per rank; groups may outlive the hub.
/// Example   tests/comm/support/ranks.h
class InProcessHub {
 public:
  /// Errors    InvalidArgument if world_size < 1.
  InProcessHub(int world_size, ProcessGroup::Duration timeout);
  ~InProcessHub();

  int world_size() const;
  /// The group as `rank` sees it. Blocks until all ranks have joined.
  ///
  /// Errors    InvalidArgument if the rank is outside the world or has joined before; Timeout that names who did not
  ///           come.
  std::unique_ptr<ProcessGroup> join(int rank);

 private:
  std::shared_ptr<InProcessMeeting> data_;
  std::shared_ptr<InProcessMeeting> control_;
  ProcessGroup::Duration timeout_;
};

}  // namespace gradring::comm
