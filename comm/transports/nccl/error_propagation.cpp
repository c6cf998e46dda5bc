// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/error_propagation.h"

#include <fmt/format.h>

#include <sstream>

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
}

void ErrorPropagation::leave(std::uint64_t begun) { put(store_, key("left", rank_), std::to_string(begun)); }

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

}  // namespace gradring::comm::nccl
