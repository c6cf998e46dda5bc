// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/membership.h"

namespace gradring::comm::nccl {

/// Why a group broke, as the first rank that noticed has it.
struct Verdict {
  int reporter = -1;
  Membership reason = Membership::member;
  int culprit = -1;
};

/// Where a rank stands that has waited for a while: in its how-manieth collective, and in which.
struct Position {
  std::uint64_t number = 0;
  std::string what;

  bool operator==(const Position&) const = default;
};

/// What the ranks of an NCCL group tell each other beside NCCL, which does not say who is missing: in the store. News are
/// few: none while all goes well. A store that is gone has no news.
///
/// Threads   safe.
class NewsBoard {
 public:
  NewsBoard(Store& store, std::string prefix, int rank) : store_(store), prefix_(std::move(prefix)), rank_(rank) {}

  /// What broke the group, if something did.
  std::optional<Verdict> verdict() const { return read_verdict(); }
  /// The right to say what broke the group, given to one rank alone; the others receive what that rank says.
  std::optional<Verdict> claim_verdict();
  void announce(Membership reason, int culprit);

  /// Says that this rank leaves in good order, having begun so many collectives.
  void leave(std::uint64_t begun);
  std::optional<std::uint64_t> left_after(int rank) const;

  void stand_at(const Position& position);
  std::optional<Position> position(int rank) const;

 private:
  std::optional<Verdict> read_verdict() const;
  std::string key(const std::string& what) const { return prefix_ + "/" + what; }
  std::string key(const std::string& what, int rank) const { return key(what) + "/" + std::to_string(rank); }

  Store& store_;
  std::string prefix_;
  int rank_;
};

}  // namespace gradring::comm::nccl
