// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm::tcp {

/// Why something is not possible yet, each reason once: "[::1]:29500: Connection refused, 127.0.0.1:29500: ...".
class Reasons {
 public:
  void add(const std::string& reason);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// What to tell the user about a peer that does not complete the handshake.
struct DialAdvice {
  const char* closed;    ///< it closed the connection; a sentence part such as "it closed the connection; expected ..."
  const char* rejected;  ///< it does not know the token; follows "ADDRESS is "
};

/// A connection on which both sides are authenticated.
struct DialledPeer {
  UniqueFd socket;  ///< non-blocking
  SocketAddress address;
};

/// Dials all addresses once, at the same time. Returns the first connection on which both sides are authenticated; else
/// `reasons` has that of each address. Waits for answers until the deadline.
///
/// Errors    InvalidArgument if a listener does not know the token.
std::optional<DialledPeer> dial_first(const std::vector<SocketAddress>& addresses, const Identity& self, int peer,
                                      const DialAdvice& advice, Deadline deadline, Reasons& reasons);

}  // namespace gradring::comm::tcp
