// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/dial.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <list>

namespace gradring::comm::tcp {
namespace {

bool is_connected(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

/// One connection attempt.
struct Dialled {
  SocketAddress address;
  Handshake handshake;
};

/// Why a handshake has failed. Throws if the peer does not know the token.
std::string why_failed(const Dialled& attempt, const DialAdvice& advice) {
  const Handshake& handshake = attempt.handshake;
  if (handshake.state() == Handshake::State::closed)
    return handshake.error_number() == 0 ? advice.closed : reason_of(handshake.error_number());
  if (!handshake.overdue())
    throw InvalidArgument(fmt::format("{} is {}", attempt.address.to_string(), advice.rejected));
  return is_connected(handshake.fd()) ? "a process listens there, but does not answer" : "no answer in time";
}

std::list<Dialled> dial_all(const std::vector<SocketAddress>& addresses, const Identity& self, int peer,
                            Deadline deadline, Reasons& reasons) {
  std::list<Dialled> attempts;
  for (const SocketAddress& address : addresses) try {
      attempts.push_back({address, Handshake::dial(address, self, peer, deadline)});
    } catch (const DeviceError& error) {  // no socket of this family
      reasons.add(fmt::format("{}: {}", address.to_string(), error.what()));
    }
  return attempts;
}

}  // namespace

void Reasons::add(const std::string& reason) {
  if (text_.find(reason) == std::string::npos) text_ += (text_.empty() ? "" : ", ") + reason;
}

std::optional<DialledPeer> dial_first(const std::vector<SocketAddress>& addresses, const Identity& self, int peer,
                                      const DialAdvice& advice, Deadline deadline, Reasons& reasons) {
  std::list<Dialled> attempts = dial_all(addresses, self, peer, deadline, reasons);
  while (!attempts.empty()) {
    std::vector<pollfd> sources;
    for (auto it = attempts.begin(); it != attempts.end();) {
      const auto state = it->handshake.advance();
      if (state == Handshake::State::proven) return DialledPeer{it->handshake.release(), it->address};
      if (state == Handshake::State::going) {
        sources.push_back({it->handshake.fd(), it->handshake.interest(), 0});
        ++it;
      } else {
        reasons.add(fmt::format("{}: {}", it->address.to_string(), why_failed(*it, advice)));
        it = attempts.erase(it);
      }
    }
    if (!sources.empty()) ::poll(sources.data(), sources.size(), poll_timeout(deadline));
  }
  return std::nullopt;
}

}  // namespace gradring::comm::tcp
