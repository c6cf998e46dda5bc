// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/deadline.h"

namespace gradring::comm {

/// A rank's state in its group. The last three are failures: the rank threw and names a failed rank.
enum class GroupState : std::uint32_t { member, left, lost_peer, timed_out, desync };

/// The operation that a rank waits in, for error messages.
struct PendingOp {
  std::string_view operation;
  std::uint64_t number = 0;  ///< sequence number of the collective or allocation in its group
  std::size_t step = 0;
  Deadline::Clock::time_point since = Deadline::Clock::now();
};

/// The first failure of a rank's group, shared by the group's transports: a rank that fails in one of them leaves all,
/// and its peers must learn the cause in each, or they would take this rank for the cause.
///
/// Threads   safe.
class FirstFailure {
 public:
  struct Cause {
    std::exception_ptr error;
    GroupState reason = GroupState::member;
    int failed_rank = -1;
  };
  /// Keeps the cause unless there is one. Returns the kept one.
  const Cause& keep(const Cause& cause);
  /// Null until a transport has failed.
  const Cause* cause() const { return failed_.load() ? &cause_ : nullptr; }

 private:
  std::mutex mutex_;
  Cause cause_;  // constant once failed_ is set
  std::atomic<bool> failed_{false};
};

/// Fails a group in the same way for every transport: keeps the error, notifies the other ranks and throws. Every later
/// call throws the same error. A transport whose group has failed in another transport adopts that error.
///
/// Threads   one thread at a time, except `share`.
class GroupFailure {
 public:
  /// Describes a peer in messages: "process 4711".
  using Describe = std::function<std::string(int peer)>;
  /// Tells all other ranks why this rank fails and which rank failed, so that all name the same rank.
  using Notify = std::function<void(GroupState reason, int failed_rank)>;
  GroupFailure(int rank, Describe describe, Notify notify);

  /// PeerLost: the peer ended without a goodbye. `how` follows its name: "died". `others` are gone too: a launcher that
  /// ends a run after a death ends the remaining ranks, and the order is not known here.
  [[noreturn]] void throw_peer_lost(int peer, std::string_view how, const PendingOp& op,
                                    const std::vector<int>& others = {});
  /// PeerLost: the peer left the group normally, but this rank needs it.
  [[noreturn]] void throw_peer_left(int peer, const PendingOp& op);
  /// The error that another rank reports.
  [[noreturn]] void throw_reported(int reporter, GroupState reason, int failed_rank, const PendingOp& op);
  /// Timeout. The chain of waiting ranks that starts at the first of `awaited` ends at `failed_rank` (-1: unknown);
  /// `how` follows that rank's name: "is slow".
  [[noreturn]] void throw_timeout(const std::vector<int>& awaited, int failed_rank, std::string_view how,
                                  const PendingOp& op);
  [[noreturn]] void throw_desync(int peer, const std::string& message, const PendingOp& op);

  /// From now on the transports that share `first` fail together. It must outlive this object.
  void share(FirstFailure& first) { first_.store(&first); }
  /// Whether another transport has failed, and this one has not adopted that yet.
  bool failed_elsewhere() const;
  /// If so, keeps that error and notifies the other ranks.
  void adopt();
  /// Throws the error that failed the group, if any.
  void throw_if_failed() const;
  /// The same after adopt().
  void adopt_and_throw_if_failed() {
    adopt();
    throw_if_failed();
  }
  bool failed() const { return error_ != nullptr; }

 private:
  template <class E>
  [[noreturn]] void fail(GroupState reason, int failed_rank, const std::string& message, const PendingOp& op);
  void adopt(const FirstFailure::Cause& cause);
  std::string name_of(int peer) const;

  int rank_;
  Describe describe_;
  Notify notify_;
  std::atomic<FirstFailure*> first_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace gradring::comm
