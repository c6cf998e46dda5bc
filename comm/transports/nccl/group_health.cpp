// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/group_health.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "comm/transport/error.h"

namespace gradring::comm::nccl {
namespace {

/// The time that the rank with the claim has to report the root cause.
constexpr std::chrono::seconds kReportTime(1);

std::optional<std::string> look_up(Store& store, const std::string& key) {
  try {
    return store.get(key);
  } catch (const Error&) {  // not set, or the store is gone
    return std::nullopt;
  }
}

void put(Store& store, const std::string& key, const std::string& value) {
  try {
    store.set(key, value);
  } catch (const Error&) {  // the other ranks have their own deadlines
  }
}

RootCause parse_root_cause(const std::string& text) {
  std::istringstream fields(text);
  RootCause root_cause;
  std::uint32_t reason = 0;
  fields >> root_cause.reporter >> reason >> root_cause.failed_rank;
  root_cause.reason = static_cast<GroupState>(reason);
  return root_cause;
}

}  // namespace

bool ErrorPropagation::has_notice() const { return look_up(store_, key("notice")).has_value(); }

/// After what it announces.
void ErrorPropagation::give_notice() { put(store_, key("notice"), ""); }

std::optional<RootCause> ErrorPropagation::root_cause() const {
  const auto text = look_up(store_, key("verdict"));
  return text ? std::optional(parse_root_cause(*text)) : std::nullopt;
}

std::optional<RootCause> ErrorPropagation::claim_root_cause() {
  try {
    if (store_.add(key("verdicts"), 1) == 1) return std::nullopt;
    return parse_root_cause(store_.wait(key("verdict"), Deadline::after(kReportTime)));
  } catch (const Error&) {  // the store is gone, or the first rank died before its report
    return std::nullopt;
  }
}

void ErrorPropagation::report(GroupState reason, int failed_rank) {
  put(store_, key("verdict"), fmt::format("{} {} {}", rank_, static_cast<std::uint32_t>(reason), failed_rank));
  give_notice();
}

void ErrorPropagation::leave(std::uint64_t begun) {
  put(store_, key("left", rank_), std::to_string(begun));
  give_notice();
}

std::optional<std::uint64_t> ErrorPropagation::left_after(int rank) const {
  const auto text = look_up(store_, key("left", rank));
  return text ? std::optional<std::uint64_t>(std::stoull(*text)) : std::nullopt;
}

void ErrorPropagation::publish_position(const Position& position) {
  put(store_, key("at", rank_), fmt::format("{} {}", position.number, position.what));
}

std::optional<Position> ErrorPropagation::position(int rank) const {
  const auto text = look_up(store_, key("at", rank));
  if (!text) return std::nullopt;
  const std::size_t space = text->find(' ');
  return Position{.number = std::stoull(*text), .what = text->substr(space + 1)};
}

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
  if (const std::optional<RootCause> earlier = propagation_.claim_root_cause())
    fail_as_reported(*earlier, op);
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
  if (!failed()) fail_as_reported(root_cause, op);
}

void GroupHealth::fail_as_reported(const RootCause& root_cause, const PendingOp& op) {
  follows_ = true;
  fail_with(
      [&](GroupFailure& failure) {
        failure.throw_reported(root_cause.reporter, root_cause.reason, root_cause.failed_rank, op);
      },
      op);
}

void GroupHealth::adopt(const PendingOp& op) {
  if (failed() || !failure_.failed_elsewhere()) return;
  fail(op, [](GroupFailure& failure) { failure.adopt_and_throw_if_failed(); });
}

void GroupHealth::fail_with(const std::function<void(GroupFailure&)>& raise, const PendingOp& op) {
  std::string reason;
  try {
    raise(failure_);
  } catch (const CommError& error) {  // failure_ keeps it and throws it from the next call
    reason = error.what();
  }
  failed_.store(true, std::memory_order_release);
  exit_message_ = fmt::format(
      "rank {} exits: the abort of NCCL did not end within {:.1f} s, in {} {}, transfer {}; cause: {}", rank_,
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
