// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm::tcp {

/// Waits for the sockets of all peers: by ppoll, which costs time for every peer at each call, or by epoll for long
/// waits, which costs a call for each change of what to wait for.
class SocketPoll {
 public:
  explicit SocketPoll(std::size_t peers) : sockets_(peers), registered_(peers) {}

  /// What to wait for: POLLIN, POLLOUT, both, or 0.
  void set(std::size_t peer, int fd, short events) { sockets_[peer] = {events != 0 ? fd : -1, events, 0}; }
  /// Blocks until a socket is ready, for at most `longest`, after `spins` calls that do not block. False on timeout.
  bool wait(std::chrono::nanoseconds longest, int spins);
  /// Blocks until a socket is ready, the deadline passes, or stop() holds, which is asked several times per second: at a
  /// cost that does not depend on the number of peers.
  bool wait_long(Deadline deadline, const std::function<bool()>& stop);
  /// Whether the peer's socket was ready in the last wait.
  bool ready(std::size_t peer) const { return sockets_[peer].revents != 0; }

 private:
  bool register_changes();

  std::vector<pollfd> sockets_;     // by peer
  std::vector<pollfd> registered_;  // what epoll_ waits for; no events: nothing
  UniqueFd epoll_;                  // from the first long wait on
};

}  // namespace gradring::comm::tcp
