// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/group_health.h"

#include <fmt/format.h>

#include <future>
#include <thread>
#include <utility>

#include "comm/error.h"

namespace gradring::comm::nccl {

GroupHealth::GroupHealth(int rank, GroupFailure::Describe describe, NewsBoard& board, Communicator& communicator,
                         const Surroundings& surroundings)
    : rank_(rank),
      board_(board),
      communicator_(communicator),
      surroundings_(surroundings),
      failure_(rank, std::move(describe), [this](Membership reason, int culprit) {
        if (!follows_) board_.announce(reason, culprit);
      }) {}

void GroupHealth::fail(const Errand& errand, const std::function<void(GroupFailure&)>& blame) {
  const std::lock_guard lock(mutex_);
  if (broken()) return;
  const std::optional<Verdict> earlier = board_.claim_verdict();
  follows_ = earlier.has_value();
  if (earlier)
    break_down(
        [&](GroupFailure& failure) { failure.follow(earlier->reporter, earlier->reason, earlier->culprit, errand); },
        errand);
  else
    break_down(blame, errand);
}

void GroupHealth::follow(const Verdict& verdict, const Errand& errand) {
  const std::lock_guard lock(mutex_);
  if (broken()) return;
  follows_ = true;
  break_down([&](GroupFailure& failure) { failure.follow(verdict.reporter, verdict.reason, verdict.culprit, errand); },
             errand);
}

void GroupHealth::break_down(const std::function<void(GroupFailure&)>& blame, const Errand& errand) {
  std::string reason;
  try {
    blame(failure_);
  } catch (const CommError& error) {  // kept by failure_: whoever calls next is thrown it again
    reason = error.what();
  }
  broken_.store(true, std::memory_order_release);
  abort_or_leave(
      fmt::format("rank {} leaves: NCCL's abort did not end within {:.1f} s, in {} {}, step {}, after this: {}", rank_,
                  std::chrono::duration<double>(surroundings_.abort_patience).count(), errand.operation, errand.number,
                  errand.step, reason));
}

void GroupHealth::abort_or_leave(const std::string& last_words) {
  std::promise<void> ended;
  std::thread aborting([&] {
    communicator_.abort();
    ended.set_value();
  });
  if (ended.get_future().wait_for(surroundings_.abort_patience) != std::future_status::ready)
    surroundings_.leave_process(last_words);
  aborting.join();
}

void GroupHealth::refuse_if_broken() const {
  if (broken()) failure_.refuse_if_broken();
}

void GroupHealth::finish(std::chrono::nanoseconds patience) {
  const std::lock_guard lock(mutex_);
  if (broken() || communicator_.finish(Deadline::after(patience)) == ncclSuccess) return;
  abort_or_leave(fmt::format("rank {} leaves: NCCL neither finished nor aborted while the group was closed", rank_));
}

}  // namespace gradring::comm::nccl
