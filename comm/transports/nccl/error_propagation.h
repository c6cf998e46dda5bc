// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/rendezvous/store.h"
#include "comm/transport/group_failure.h"

namespace gradring::comm::nccl {

/// Why a group failed, as reported by the first rank that detected it.
struct RootCause {
  int reporter = -1;
  GroupState reason = GroupState::member;
  int failed_rank = -1;
};

/// The collective that a rank waits in.
struct Position {
  std::uint64_t number = 0;  ///< how many collectives the rank has started
  std::string what;

  bool operator==(const Position&) const = default;
};

/// Shares failures between the ranks of an NCCL group through the store, because NCCL does not report which rank is
/// missing. A group without failures writes only goodbyes. Errors of the store are ignored.
///
/// Threads   safe.
class ErrorPropagation {
 public:
  ErrorPropagation(Store& store, std::string prefix, int rank)
      : store_(store), prefix_(std::move(prefix)), rank_(rank) {}

  /// Why the group failed; empty if it has not.
  std::optional<RootCause> root_cause() const;
  /// Empty for the first caller of the group, which then must report the root cause; others receive that report.
  std::optional<RootCause> claim_root_cause();
  void report(GroupState reason, int failed_rank);

  /// Publishes that this rank leaves normally, after it started `begun` collectives.
  void leave(std::uint64_t begun);
  std::optional<std::uint64_t> left_after(int rank) const;

  void publish_position(const Position& position);
  std::optional<Position> position(int rank) const;

 private:
  std::string key(const std::string& what) const { return prefix_ + "/" + what; }
  std::string key(const std::string& what, int rank) const { return key(what) + "/" + std::to_string(rank); }

  Store& store_;
  std::string prefix_;
  int rank_;
};

}  // namespace gradring::comm::nccl
