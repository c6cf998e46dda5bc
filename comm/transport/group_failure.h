// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/transport/membership.h"
#include "kernels/runtime/deadline.h"

namespace gradring::comm {

/// What a rank is doing while it waits, for messages.
struct Errand {
  std::string_view operation;
  std::uint64_t number = 0;  ///< which collective or allocation of the group
  std::size_t step = 0;
  Deadline::Clock::time_point since = Deadline::Clock::now();
};

/// How a group breaks, in the same words over every transport: the failure is kept, told to the others and thrown; every
/// later call throws it again.
///
/// Threads   one thread at a time.
class GroupFailure {
 public:
  /// What a person calls a peer: "process 4711".
  using Describe = std::function<std::string(int peer)>;
  /// Tells all others why this rank fails, and whom it blames, so that they blame the same rank.
  using Tell = std::function<void(Membership reason, int culprit)>;
  GroupFailure(int rank, Describe describe, Tell tell);

  /// Throws PeerLost: the peer went without a word. `how` follows its name: "died". So did `others`: who ends a run after a
  /// death ends those, too, and nobody here knows which was first.
  [[noreturn]] void lose(int peer, std::string_view how, const Errand& errand, const std::vector<int>& others = {});
  /// Throws PeerLost: the peer has left in good order, and was needed.
  [[noreturn]] void miss(int peer, const Errand& errand);
  /// Throws what another rank has failed with.
  [[noreturn]] void follow(int reporter, Membership reason, int culprit, const Errand& errand);
  /// Throws Timeout. The line of those who wait for the first of `awaited` ends at `culprit` (-1: nobody is known);
  /// `how` follows the culprit's name: "is slow".
  [[noreturn]] void time_out(const std::vector<int>& awaited, int culprit, std::string_view how, const Errand& errand);
  /// Throws Desync.
  [[noreturn]] void report_desync(int peer, const std::string& message, const Errand& errand);

  /// Throws again what broke the group, if something did.
  void refuse_if_broken() const;
  bool broken() const { return broken_ != nullptr; }

 private:
  template <class E>
  [[noreturn]] void fail(Membership reason, int culprit, const std::string& message, const Errand& errand);
  std::string name_of(int peer) const;

  int rank_;
  Describe describe_;
  Tell tell_;
  std::exception_ptr broken_;
};

}  // namespace gradring::comm
