// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/news_board.h"

#include <fmt/format.h>

#include <sstream>

#include "comm/error.h"

namespace gradring::comm::nccl {
namespace {

/// How long who has claimed a verdict may take to write it.
constexpr std::chrono::seconds kClaimed(1);

std::optional<std::string> look_up(Store& store, const std::string& key) {
  try {
    return store.get(key);
  } catch (const Error&) {  // nobody has set it, or the store is gone
    return std::nullopt;
  }
}

void put(Store& store, const std::string& key, const std::string& value) {
  try {
    store.set(key, value);
  } catch (const Error&) {  // the others have deadlines of their own
  }
}

Verdict parse_verdict(const std::string& text) {
  std::istringstream words(text);
  Verdict verdict;
  std::uint32_t reason = 0;
  words >> verdict.reporter >> reason >> verdict.culprit;
  verdict.reason = static_cast<Membership>(reason);
  return verdict;
}

}  // namespace

std::optional<Verdict> NewsBoard::read_verdict() const {
  const auto text = look_up(store_, key("verdict"));
  return text ? std::optional(parse_verdict(*text)) : std::nullopt;
}

std::optional<Verdict> NewsBoard::claim_verdict() {
  try {
    if (store_.add(key("verdicts"), 1) == 1) return std::nullopt;
    return parse_verdict(store_.wait(key("verdict"), Deadline::after(kClaimed)));
  } catch (const Error&) {  // the store is gone, or the first rank died on its way
    return std::nullopt;
  }
}

void NewsBoard::announce(Membership reason, int culprit) {
  put(store_, key("verdict"), fmt::format("{} {} {}", rank_, static_cast<std::uint32_t>(reason), culprit));
}

void NewsBoard::leave(std::uint64_t begun) { put(store_, key("left", rank_), std::to_string(begun)); }

std::optional<std::uint64_t> NewsBoard::left_after(int rank) const {
  const auto text = look_up(store_, key("left", rank));
  return text ? std::optional<std::uint64_t>(std::stoull(*text)) : std::nullopt;
}

void NewsBoard::stand_at(const Position& position) {
  put(store_, key("at", rank_), fmt::format("{} {}", position.number, position.what));
}

std::optional<Position> NewsBoard::position(int rank) const {
  const auto text = look_up(store_, key("at", rank));
  if (!text) return std::nullopt;
  const std::size_t space = text->find(' ');
  return Position{.number = std::stoull(*text), .what = text->substr(space + 1)};
}

}  // namespace gradring::comm::nccl
