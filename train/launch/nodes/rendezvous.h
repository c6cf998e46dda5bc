// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "comm/sockets/acceptor.h"
#include "comm/sockets/dial.h"
#include "comm/sockets/handshake.h"
#include "kernels/base/deadline.h"
#include "train/launch/nodes/node_link.h"

namespace gradring::train {

/// How agents connect: the leader (node 0) listens, the others dial it. Both sides authenticate by the secret of the
/// run before anything else is read or kept (comm/sockets/handshake.h).

using comm::tcp::Acceptor;
using comm::tcp::Reasons;

/// Dials all addresses of the leader once, at the same time. Returns the first link on which both sides are
/// authenticated; else `reasons` has that of each address. Waits for answers until the deadline, 5 s at most.
///
/// `self`: what this agent proves; nothing while it does not know the token.
///
/// Errors    InvalidArgument if the listener belongs to another run.
std::optional<NodeLink> dial_leader(const std::string& host, int port, const std::optional<comm::tcp::Identity>& self,
                                    Deadline deadline, Reasons& reasons);

}  // namespace gradring::train
