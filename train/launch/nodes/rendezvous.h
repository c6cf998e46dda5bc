// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport/tcp/handshake.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/error.h"
#include "train/launch/nodes/node_link.h"

namespace gradring::train {

/// How agents connect: the leader (node 0) listens, the others dial it. Both sides authenticate by the secret of the
/// run before anything else is read or kept (comm/transport/tcp/handshake.h).

/// Another process listens at the address: a leader of the same run, or an unrelated one.
struct AddressInUse : DeviceError {
  using DeviceError::DeviceError;
};

/// The leader's listening sockets. It polls them every 20 ms at most and accepts a few connections each time, so that a
/// flood of unauthenticated connections takes little time from the workers on this host. A node joins within two polls.
class Acceptor {
 public:
  /// Listens at all addresses of `host` that belong to this machine.
  ///
  /// Errors    DeviceError that lists the reason for each address, if none does; AddressInUse if one is taken.
  Acceptor(const std::string& host, int port, const comm::tcp::Identity& self);

  /// The descriptors to poll for reading; none before next_poll().
  std::vector<int> fds() const;
  /// When to call admit() at the latest; unset if fds() tells.
  const std::optional<Deadline>& next_poll() const { return next_poll_; }
  /// Advances the pending handshakes, unless called before next_poll(). Returns the authenticated connections. Does not
  /// block.
  std::list<NodeLink> admit();

 private:
  using Pending = std::list<comm::tcp::Handshake>::iterator;

  void accept(const UniqueFd& listener, std::list<NodeLink>& admitted);
  /// Returns the next handshake.
  Pending advance(Pending handshake, std::list<NodeLink>& admitted);

  comm::tcp::Identity self_;
  std::vector<UniqueFd> listeners_;
  std::list<comm::tcp::Handshake> pending_;
  std::optional<Deadline> next_poll_;
};

/// "host:1", "[::1]:1"
std::string endpoint_text(const std::string& host, int port);

/// Returns what this agent proves, before each connection attempt; nothing while it does not know the token.
using FindIdentity = std::function<std::optional<comm::tcp::Identity>()>;

/// Dials repeatedly until the leader answers and both sides are authenticated. At the deadline it returns nothing, and
/// `tried` lists each address tried last with the reason. Resolves the name each time: pods get addresses late.
///
/// Errors    InvalidArgument at once if the listener belongs to another run; what `find_identity` throws.
std::optional<NodeLink> dial_leader(const std::string& host, int port, const FindIdentity& find_identity,
                                    Deadline deadline, std::string& tried);

}  // namespace gradring::train
