// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "comm/transport/group_failure.h"
#include "comm/transports/nccl/communicator.h"
#include "comm/transports/nccl/error_propagation.h"

namespace gradring::comm::nccl {

/// Whether the group has failed, shared by the posting thread and the watchdog. On a failure all ranks agree on the
/// root cause (ErrorPropagation), and the communicator is stopped, which ends waiting streams. If NCCL does not do that
/// in time, the process exits instead of hanging.
///
/// Threads   safe.
class GroupHealth {
 public:
  /// `describe` describes a peer in messages; `abort_timeout` is the communicator's.
  GroupHealth(int rank, GroupFailure::Describe describe, ErrorPropagation& propagation, Communicator& communicator,
              std::chrono::nanoseconds abort_timeout);

  /// Fails the group unless it has failed: with another rank's root cause if there is one, else with `raise`, which
  /// calls a throwing function of GroupFailure.
  void fail(const PendingOp& op, const std::function<void(GroupFailure&)>& raise);
  /// Fails the group because NCCL reports `result`, which names no rank if a peer is the cause.
  void fail_in_nccl(ncclResult_t result, const PendingOp& op);
  /// Fails the group with another rank's root cause.
  void follow(const RootCause& root_cause, const PendingOp& op);
  /// As Transport::share_failure.
  void share(FirstFailure& first) { failure_.share(first); }
  /// Fails the group if another transport of it has failed.
  void adopt(const PendingOp& op);

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws the error that failed the group, if any.
  void throw_if_failed() const;

  /// Frees the communicator: finalizes it, or aborts it if the group has failed.
  void finish();

 private:
  void fail_with(const std::function<void(GroupFailure&)>& raise, const PendingOp& op);

  int rank_;
  ErrorPropagation& propagation_;
  Communicator& communicator_;
  std::chrono::nanoseconds abort_timeout_;
  std::mutex mutex_;  // held while the group is failed
  bool follows_ = false;
  std::string exit_message_;  // of a failed group
  GroupFailure failure_;      // constant once failed_ is set
  std::atomic<bool> failed_{false};
};

}  // namespace gradring::comm::nccl
