// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/group_health.h"

#include <fmt/format.h>

#include <future>
#include <thread>
#include <utility>

#include "comm/error.h"

namespace gradring::comm::nccl {

GroupHealth::GroupHealth(int rank, GroupFailure::Describe describe, ErrorPropagation& propagation,
                         Communicator& communicator, const Dependencies& dependencies)
    : rank_(rank),
      propagation_(propagation),
      communicator_(communicator),
      dependencies_(dependencies),
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

void GroupHealth::fail_with(const std::function<void(GroupFailure&)>& raise, const PendingOp& op) {
  std::string reason;
  try {
    raise(failure_);
  } catch (const CommError& error) {  // failure_ keeps it and throws it from the next call
    reason = error.what();
  }
  failed_.store(true, std::memory_order_release);
  abort_or_exit(fmt::format(
      "rank {} exits: the abort of NCCL did not end within {:.1f} s, in {} {}, step {}; cause: {}", rank_,
      std::chrono::duration<double>(dependencies_.abort_timeout).count(), op.operation, op.number, op.step, reason));
}

void GroupHealth::abort_or_exit(const std::string& exit_message) {
  std::promise<void> ended;
  std::thread aborting([&] {
    communicator_.abort();
    ended.set_value();
  });
  if (ended.get_future().wait_for(dependencies_.abort_timeout) != std::future_status::ready)
    dependencies_.exit_process(exit_message);
  aborting.join();
}

void GroupHealth::throw_if_failed() const {
  if (failed()) failure_.throw_if_failed();
}

void GroupHealth::finish(std::chrono::nanoseconds timeout) {
  const std::lock_guard lock(mutex_);
  if (failed() || communicator_.finish(Deadline::after(timeout)) == ncclSuccess) return;
  abort_or_exit(
      fmt::format("rank {} exits: NCCL could neither be finalized nor aborted when the group was closed", rank_));
}

}  // namespace gradring::comm::nccl
