// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "comm/transports/tcp/handshake.h"
#include "kernels/base/deadline.h"
#include "train/launch/nodes/node_link.h"

namespace gradring::train {

/// How agents connect: the leader (node 0) listens, the others dial it. Both sides authenticate by the secret of the
/// run before anything else is read or kept (comm/transports/tcp/handshake.h).

/// The leader's listening sockets. It polls them every 20 ms at most and accepts a few connections each time, so that a
/// flood of unauthenticated connections takes little time from the workers on this host. A node joins within two polls.
/// Pending connections leave the run the descriptors that it needs.
class Acceptor {
 public:
  /// Listens at all addresses of the host `listen` that belong to this machine; empty: at all addresses of this
  /// machine, because peers may know it by another one than it does (127.0.1.1 in /etc/hosts, NAT). `own_descriptors`:
  /// what the run opens later.
  ///
  /// Errors    comm::tcp::AddressInUse, if at one of several, because nodes could join two runs; UnresolvedName;
  ///           DeviceError that lists the reason for each address, if it can listen at none.
  Acceptor(const std::string& listen, int port, const comm::tcp::Identity& self, std::size_t own_descriptors = 0);

  /// "0.0.0.0:29500, [::]:29500"
  std::string where() const;
  /// The descriptors to poll for reading; none before next_poll().
  std::vector<int> fds() const;
  /// When to call admit() at the latest; unset if fds() tells.
  const std::optional<Deadline>& next_poll() const { return next_poll_; }
  /// Advances the pending handshakes, unless called before next_poll(). Returns the authenticated connections. Does not
  /// block.
  std::list<NodeLink> admit();

 private:
  using Pending = std::list<comm::tcp::Handshake>::iterator;

  std::size_t most_pending() const;
  void accept(const UniqueFd& listener, std::size_t most, std::list<NodeLink>& admitted);
  /// Returns the next handshake.
  Pending advance(Pending handshake, std::list<NodeLink>& admitted);

  comm::tcp::Identity self_;
  std::size_t own_descriptors_;
  std::vector<UniqueFd> listeners_;
  std::list<comm::tcp::Handshake> pending_;
  std::optional<Deadline> next_poll_;
};

/// "host:1", "[::1]:1"
std::string endpoint_text(const std::string& host, int port);

/// Why something is not possible yet, each reason once: "[::1]:29500: Connection refused, 127.0.0.1:29500: ...".
class Reasons {
 public:
  void add(const std::string& reason);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Dials all addresses of the leader once, at the same time. Returns the first link on which both sides are
/// authenticated; else `reasons` has that of each address. Waits for answers until the deadline, 5 s at most.
///
/// `self`: what this agent proves; nothing while it does not know the token.
///
/// Errors    InvalidArgument if the listener belongs to another run.
std::optional<NodeLink> dial_leader(const std::string& host, int port, const std::optional<comm::tcp::Identity>& self,
                                    Deadline deadline, Reasons& reasons);

}  // namespace gradring::train
