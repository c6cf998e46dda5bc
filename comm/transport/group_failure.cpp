// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/group_failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "comm/error.h"

namespace gradring::comm {
namespace {

/// "all_reduce 17"
std::string operation_of(const Errand& errand) {
  return errand.number ? fmt::format("{} {}", errand.operation, errand.number) : std::string(errand.operation);
}

/// "all_reduce 17, step 3"
std::string place_of(const Errand& errand) { return fmt::format("{}, step {}", operation_of(errand), errand.step); }

}  // namespace

GroupFailure::GroupFailure(int rank, Describe describe, Tell tell)
    : rank_(rank), describe_(std::move(describe)), tell_(std::move(tell)) {}

void GroupFailure::lose(int peer, std::string_view how, const Errand& errand, const std::vector<int>& others) {
  std::string message = fmt::format("{} {} while rank {} waited in {}: look at its log or its exit status",
                                    name_of(peer), how, rank_, place_of(errand));
  for (const int other : others) message += fmt::format("; {} is gone, too", name_of(other));
  fail<PeerLost>(Membership::lost_peer, peer, message, errand);
}

void GroupFailure::miss(int peer, const Errand& errand) {
  fail<PeerLost>(Membership::lost_peer, peer,
                 fmt::format("{} left the group while rank {} waited for it in {}: look at its log", name_of(peer),
                             rank_, place_of(errand)),
                 errand);
}

void GroupFailure::follow(int reporter, Membership reason, int culprit, const Errand& errand) {
  const std::string blamed = culprit == rank_ ? "this rank" : name_of(culprit);
  const std::string where = fmt::format("; rank {} was in {}", rank_, place_of(errand));
  if (reason == Membership::lost_peer)
    fail<PeerLost>(reason, culprit, fmt::format("rank {} reports that it lost {}{}", reporter, blamed, where), errand);
  if (reason == Membership::timed_out)
    fail<Timeout>(reason, culprit,
                  fmt::format("rank {} reports that it waited in vain for {}{}", reporter, blamed, where), errand);
  fail<Desync>(reason, culprit,
               fmt::format("rank {} reports that {} is out of step with it{}", reporter, blamed, where), errand);
}

void GroupFailure::time_out(const std::vector<int>& awaited, int culprit, std::string_view how, const Errand& errand) {
  const std::string line = awaited.empty() || culprit == awaited.front()
                               ? ""
                               : fmt::format(" (the line of those who wait ends at rank {})", culprit);
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - errand.since);
  fail<Timeout>(Membership::timed_out, culprit,
                fmt::format("rank {} waited {:.1f} s for rank {} in {}{}: {} {}", rank_, waited.count(),
                            fmt::join(awaited, ", "), place_of(errand), line, name_of(culprit), how),
                errand);
}

void GroupFailure::report_desync(int peer, const std::string& message, const Errand& errand) {
  fail<Desync>(Membership::out_of_step, peer, message, errand);
}

template <class E>
void GroupFailure::fail(Membership reason, int culprit, const std::string& message, const Errand& errand) {
  const E error({rank_, culprit, operation_of(errand), errand.step}, message);
  broken_ = std::make_exception_ptr(error);
  tell_(reason, culprit);
  throw error;
}

void GroupFailure::refuse_if_broken() const {
  if (broken_) std::rethrow_exception(broken_);
}

std::string GroupFailure::name_of(int peer) const {
  if (peer < 0) return "an unknown rank";
  return fmt::format("rank {} ({})", peer, describe_(peer));
}

}  // namespace gradring::comm
