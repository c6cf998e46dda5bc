// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/group_failure.h"

#include <fmt/format.h>

#include <utility>

#include "comm/transport/error.h"
#include "kernels/base/number_list.h"

namespace gradring::comm {
namespace {

/// For example "all_reduce 17".
std::string operation_of(const PendingOp& op) {
  return op.number ? fmt::format("{} {}", op.operation, op.number) : std::string(op.operation);
}

/// For example "all_reduce 17, transfer 3": a user knows the steps of the training.
std::string position_of(const PendingOp& op) { return fmt::format("{}, transfer {}", operation_of(op), op.step); }

}  // namespace

const FirstFailure::Cause& FirstFailure::keep(const Cause& cause) {
  const std::lock_guard lock(mutex_);
  if (!failed_.load()) {
    cause_ = cause;
    failed_.store(true);
  }
  return cause_;
}

GroupFailure::GroupFailure(int rank, Describe describe, Notify notify)
    : rank_(rank), describe_(std::move(describe)), notify_(std::move(notify)) {}

void GroupFailure::throw_peer_lost(int peer, std::string_view how, const PendingOp& op,
                                   const std::vector<int>& others) {
  std::string message = fmt::format("{} {} while rank {} waited in {}: look at its log or its exit status",
                                    name_of(peer), how, rank_, position_of(op));
  for (const int other : others) message += fmt::format("; {} is gone too", name_of(other));
  fail<PeerLost>(GroupState::lost_peer, peer, message, op);
}

void GroupFailure::throw_peer_left(int peer, const PendingOp& op) {
  fail<PeerLost>(GroupState::lost_peer, peer,
                 fmt::format("{} left the group while rank {} waited for it in {}: look at its log", name_of(peer),
                             rank_, position_of(op)),
                 op);
}

void GroupFailure::throw_reported(int reporter, GroupState reason, int failed_rank, const PendingOp& op) {
  const std::string failed = failed_rank == rank_ ? "this rank" : name_of(failed_rank);
  const std::string where = fmt::format("; rank {} was in {}", rank_, position_of(op));
  if (reason == GroupState::lost_peer)
    fail<PeerLost>(reason, failed_rank, fmt::format("rank {} reports that it lost {}{}", reporter, failed, where), op);
  if (reason == GroupState::timed_out)
    fail<Timeout>(reason, failed_rank,
                  fmt::format("rank {} reports that it timed out waiting for {}{}", reporter, failed, where), op);
  fail<Desync>(reason, failed_rank,
               fmt::format("rank {} reports that {} is out of sync with it{}", reporter, failed, where), op);
}

void GroupFailure::throw_timeout(const std::vector<int>& awaited, int failed_rank, std::string_view how,
                                 const PendingOp& op) {
  const std::string chain = awaited.empty() || failed_rank == awaited.front()
                                ? ""
                                : fmt::format(" (the chain of waiting ranks ends at rank {})", failed_rank);
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - op.since);
  fail<Timeout>(GroupState::timed_out, failed_rank,
                fmt::format("rank {} waited {:.1f} s for rank {} in {}{}: {} {}", rank_, waited.count(),
                            number_list(awaited), position_of(op), chain, name_of(failed_rank), how),
                op);
}

void GroupFailure::throw_desync(int peer, const std::string& message, const PendingOp& op) {
  fail<Desync>(GroupState::desync, peer, message, op);
}

template <class E>
void GroupFailure::fail(GroupState reason, int failed_rank, const std::string& message, const PendingOp& op) {
  const FirstFailure::Cause cause{std::make_exception_ptr(E({rank_, failed_rank, operation_of(op), op.step}, message)),
                                  reason, failed_rank};
  FirstFailure* const first = first_.load();
  adopt(first ? first->keep(cause) : cause);
  std::rethrow_exception(error_);
}

void GroupFailure::adopt(const FirstFailure::Cause& cause) {
  error_ = cause.error;
  notify_(cause.reason, cause.failed_rank);
}

bool GroupFailure::failed_elsewhere() const {
  const FirstFailure* const first = first_.load();
  return !error_ && first && first->cause();
}

void GroupFailure::adopt() {
  if (failed_elsewhere()) adopt(*first_.load()->cause());
}

void GroupFailure::throw_if_failed() const {
  if (error_) std::rethrow_exception(error_);
}

std::string GroupFailure::name_of(int peer) const {
  if (peer < 0) return "an unknown rank";
  return fmt::format("rank {} ({})", peer, describe_(peer));
}

}  // namespace gradring::comm
