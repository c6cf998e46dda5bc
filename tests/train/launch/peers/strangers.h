// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "comm/transport/tcp/handshake.h"
#include "comm/transport/tcp/socket_address.h"

namespace gradring::tests {

/// Whoever may knock at the port at which agents meet, but has no business there: port scanners, lost clients, and people who
/// want in.
class Strangers {
 public:
  /// `member` is who the run would let in: what it says is overheard once, and played back.
  Strangers(int port, const comm::tcp::Identity& member);

  /// One more of them, of each kind in turn. Returns false if it was let in.
  bool knock();

 private:
  static constexpr std::size_t kMostSilent = 200;  // that stand there at a time

  UniqueFd connect() const;
  void overhear();
  bool send_and_go(const std::string& bytes) const;
  bool stay(const std::string& bytes);
  void drip();
  bool try_token() const;
  bool play_back() const;

  comm::tcp::SocketAddress address_;
  const comm::tcp::Identity& member_;
  comm::tcp::Identity other_;
  std::string hello_, proof_;     // what a member said
  std::deque<UniqueFd> waiting_;  // silent ones, and slow senders
  int knocked_ = 0;
};

}  // namespace gradring::tests
