// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/group_health.h"

#include <fmt/format.h>

#include <utility>

#include "comm/transport/error.h"

namespace gradring::comm::nccl {

GroupHealth::GroupHealth(int rank, GroupFailure::Describe describe, ErrorPropagation& propagation,
                         Communicator& communicator, std::chrono::nanoseconds abort_timeout)
    : rank_(rank),
      propagation_(propagation),
      communicator_(communicator),
      abort_timeout_(abort_timeout),
      failure_(rank, std::move(describe), [this](GroupState reason, int failed_rank) {
        if (!follows_) propagation_.report(reason, failed_rank);
      }) {}

void GroupHealth::fail(const PendingOp& op, const std::function<void(GroupFailure&)>& raise) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  const std::optional<RootCause> earlier = propagation_.claim_root_cause();
  follows_ = earlier.has_value();
  if (earlier)
    fail_with(
        [&](GroupFailure& failure) {
          failure.throw_reported(earlier->reporter, earlier->reason, earlier->failed_rank, op);
        },
        op);
  else
    fail_with(raise, op);
}

void GroupHealth::fail_in_nccl(ncclResult_t result, const PendingOp& op) {
  const std::string how = fmt::format("failed in NCCL ({})", communicator_.describe(result));
  const int failed_rank = result == ncclRemoteError ? -1 : rank_;
  fail(op, [&](GroupFailure& failure) { failure.throw_peer_lost(failed_rank, how, op); });
}

void GroupHealth::follow(const RootCause& root_cause, const PendingOp& op) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  follows_ = true;
  fail_with(
      [&](GroupFailure& failure) {
        failure.throw_reported(root_cause.reporter, root_cause.reason, root_cause.failed_rank, op);
      },
      op);
}

void GroupHealth::adopt(const PendingOp& op) {
  if (failed() || !failure_.failed_elsewhere()) return;
  fail(op, [](GroupFailure& failure) {
    failure.adopt();
    failure.throw_if_failed();
  });
}

void GroupHealth::fail_with(const std::function<void(GroupFailure&)>& raise, const PendingOp& op) {
  std::string reason;
  try {
    raise(failure_);
  } catch (const CommError& error) {  // failure_ keeps it and throws it from the next call
    reason = error.what();
  }
  failed_.store(true, std::memory_order_release);
  exit_message_ =
      fmt::format("rank {} exits: the abort of NCCL did not end within {:.1f} s, in {} {}, step {}; cause: {}", rank_,
                  std::chrono::duration<double>(abort_timeout_).count(), op.operation, op.number, op.step, reason);
  communicator_.stop(exit_message_);
}

void GroupHealth::throw_if_failed() const {
  if (failed()) failure_.throw_if_failed();
}

void GroupHealth::finish() {
  const std::lock_guard lock(mutex_);
  if (failed())
    communicator_.abort(exit_message_);
  else
    communicator_.finish();
}

}  // namespace gradring::comm::nccl
