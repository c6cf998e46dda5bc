// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/group_failure.h"
#include "comm/transports/nccl/communicator.h"

namespace gradring::comm::nccl {

/// Why a group failed, as reported by the first rank that detected it.
struct RootCause {
  int reporter = -1;
  GroupState reason = GroupState::member;
  int failed_rank = -1;
};

/// The collective that a rank waits in.
struct Position {
  std::uint64_t number = 0;  ///< how many collectives the rank has started
  std::string what;

  bool operator==(const Position&) const = default;
};

/// Shares failures between the ranks of an NCCL group through the store, because NCCL does not report which rank is
/// missing. A group without failures writes only goodbyes, and reads one key until the first of them. Errors of the
/// store are ignored.
///
/// Threads   safe.
class ErrorPropagation {
 public:
  ErrorPropagation(Store& store, std::string prefix, int rank)
      : store_(store), prefix_(std::move(prefix)), rank_(rank) {}

  /// Whether a rank has reported a root cause or left: until then there is nothing else to read.
  bool has_notice() const;
  /// Why the group failed; empty if it has not.
  std::optional<RootCause> root_cause() const;
  /// Empty for the first caller of the group, which then must report the root cause; others receive that report.
  std::optional<RootCause> claim_root_cause();
  void report(GroupState reason, int failed_rank);

  /// Publishes that this rank leaves normally, after it started `begun` collectives.
  void leave(std::uint64_t begun);
  std::optional<std::uint64_t> left_after(int rank) const;

  void publish_position(const Position& position);
  std::optional<Position> position(int rank) const;

 private:
  void give_notice();
  std::string key(const std::string& what) const { return prefix_ + "/" + what; }
  std::string key(const std::string& what, int rank) const { return key(what) + "/" + std::to_string(rank); }

  Store& store_;
  std::string prefix_;
  int rank_;
};

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
  void fail_as_reported(const RootCause& root_cause, const PendingOp& op);
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
