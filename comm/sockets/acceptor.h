// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "comm/sockets/handshake.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm::tcp {

/// A connection on which both sides are authenticated.
struct Admitted {
  UniqueFd socket;  ///< non-blocking
  int rank = 0;     ///< of the peer
};

/// Listening sockets that accept authenticated connections. It polls them every 20 ms at most and accepts a few
/// unauthenticated connections each time, so that a flood of them takes little time from the workers on this host. Peers
/// whose first message proves that they know the token are not limited: all ranks of a large world may connect at once.
/// A peer is admitted within two polls. Pending connections leave the run the descriptors that it needs.
///
/// Threads   one thread at a time.
class Acceptor {
 public:
  /// Listens at all addresses of the host `listen` that belong to this machine; empty: at all addresses of this
  /// machine, because peers may know it by another one than it does (127.0.1.1 in /etc/hosts, NAT). `peers`: how many
  /// may connect at the same time. `own_descriptors`: what the run opens later.
  ///
  /// Errors    AddressInUse, if at one of several, because peers could join two runs; UnresolvedName; CannotListen that
  ///           lists the reason for each address, if it can listen at none.
  Acceptor(const std::string& listen, int port, const Identity& self, int peers, std::size_t own_descriptors = 0);

  /// "0.0.0.0:29500, [::]:29500"
  std::string where() const;
  /// The descriptors to poll for reading; none before next_poll().
  std::vector<int> fds() const;
  /// When to call admit() at the latest; unset if fds() tells.
  const std::optional<Deadline>& next_poll() const { return next_poll_; }
  /// Advances the pending handshakes, unless called before next_poll(). Returns the authenticated connections. Does not
  /// block.
  std::list<Admitted> admit();

 private:
  using Pending = std::list<Handshake>::iterator;

  std::size_t most_pending() const;
  void accept(const UniqueFd& listener, std::size_t most, std::list<Admitted>& admitted);
  /// Returns the next handshake.
  Pending advance(Pending handshake, std::list<Admitted>& admitted);

  Identity self_;
  std::size_t own_descriptors_;
  std::vector<UniqueFd> listeners_;
  std::list<Handshake> pending_;
  std::optional<Deadline> next_poll_;
};

}  // namespace gradring::comm::tcp
