// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "comm/error.h"
#include "comm/transport/tcp/endpoint.h"
#include "comm/transport/tcp/handshake.h"
#include "comm/transport/tcp/socket_address.h"
#include "kernels/runtime/deadline.h"

namespace gradring::comm::tcp {
namespace {

constexpr int kMaxPendingHandshakes = 64;  // of unauthenticated connections, in addition to one per rank
constexpr std::chrono::seconds kHandshakeTimeout(5);
constexpr std::chrono::milliseconds kPollInterval(50);  // at most, between checks of timeouts

/// Connects one rank to all others.
class MeshRendezvous {
 public:
  MeshRendezvous(const TcpSpec& spec, const UniqueFd& listener, const Identity& self, std::vector<Endpoint> endpoints)
      : spec_(spec), listener_(listener), self_(self), endpoints_(std::move(endpoints)), peers_(endpoints_.size()) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].description = endpoints_[rank].description();
  }

  std::vector<Peer> connect_all(Deadline deadline) {
    for (int peer = 0; peer < spec_.rank; ++peer) connect(peer, deadline);
    while (!missing().empty()) {
      if (deadline.passed()) throw_missing();
      wait_for_events(deadline);
      for (Handshake& handshake : handshakes_) finish(handshake, handshake.advance_among(handshakes_), deadline);
      handshakes_.remove_if([](const Handshake& handshake) { return handshake.fd() < 0; });
      accept_pending(deadline);
      reconnect(deadline);
    }
    return std::move(peers_);
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < spec_.world_size; ++rank)
      if (rank != spec_.rank && !peers_[index(rank)].socket) ranks.push_back(rank);
    return ranks;
  }

  void connect(int peer, Deadline deadline) {
    const Endpoint& endpoint = endpoints_[index(peer)];
    handshakes_.push_back(
        Handshake::dial(begin_connect(SocketAddress(endpoint.host, endpoint.port)), self_, peer, deadline));
  }

  /// Connects again to peers that closed the connection: they may have had too many pending handshakes.
  void reconnect(Deadline deadline) {
    if (!reconnect_at_.passed()) return;
    for (const int peer : std::exchange(to_reconnect_, {})) connect(peer, deadline);
  }

  /// Accepts a limited number of connections, so that a flood does not delay the other handshakes.
  void accept_pending(Deadline deadline) {
    for (int i = 0; i < kMaxPendingHandshakes; ++i) {
      UniqueFd socket = accept_one(listener_);
      if (!socket || !make_room()) return;
      handshakes_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kHandshakeTimeout)));
      finish(handshakes_.back(), handshakes_.back().advance_among(handshakes_), deadline);
      if (handshakes_.back().fd() < 0) handshakes_.pop_back();
    }
  }

  /// Drops the oldest unauthenticated connection if there are too many. The limit includes all ranks, because they may
  /// connect at the same time and are unauthenticated until their Hello arrives. False if none can be dropped.
  bool make_room() {
    const auto dialled = [](const Handshake& handshake) { return handshake.dialled(); };
    const auto accepted = std::ssize(handshakes_) - std::ranges::count_if(handshakes_, dialled);
    if (accepted < spec_.world_size + kMaxPendingHandshakes) return true;
    const auto oldest = std::ranges::find_if(handshakes_, &Handshake::unauthenticated);
    if (oldest == handshakes_.end()) return false;
    handshakes_.erase(oldest);
    return true;
  }

  /// Takes over the socket of a completed handshake, or closes it.
  void finish(Handshake& handshake, Handshake::State state, Deadline deadline) {
    if (state == Handshake::State::going) return;
    UniqueFd socket = handshake.release();
    if (state == Handshake::State::proven) {
      UniqueFd& slot = peers_[index(handshake.peer())].socket;
      if (!slot) slot = std::move(socket);
      return;
    }
    if (!handshake.dialled() || deadline.passed()) return;
    const int peer = handshake.peer();
    if (state == Handshake::State::refused)
      throw PeerLost(
          {spec_.rank, peer, "join", 0},
          fmt::format("rank {} reached a program at {} that is not rank {} of this run ({}): that rank has ended and "
                      "another program uses its port; look at its log",
                      spec_.rank, where(peer), peer, peers_[index(peer)].description));
    if (handshake.error_number() == ECONNREFUSED)
      throw PeerLost(
          {spec_.rank, peer, "join", 0},
          fmt::format("rank {} cannot connect to {}: connection refused; rank {} ({}) has ended, look at its "
                      "log",
                      spec_.rank, where(peer), peer, peers_[index(peer)].description));
    last_error_ =
        fmt::format("; {}: {}", where(peer),
                    handshake.error_number() != 0 ? reason_of(handshake.error_number()) : "connection closed by peer");
    to_reconnect_.push_back(peer);
    reconnect_at_ = Deadline::after(kPollInterval);
  }

  void wait_for_events(Deadline deadline) {
    std::vector<pollfd> events = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Handshake& handshake : handshakes_)
      events.push_back({.fd = handshake.fd(), .events = handshake.interest(), .revents = 0});
    ::poll(events.data(), events.size(), std::min(poll_timeout(deadline), static_cast<int>(kPollInterval.count())));
  }

  std::string where(int peer) const {
    return SocketAddress(endpoints_[index(peer)].host, endpoints_[index(peer)].port).to_string();
  }

  [[noreturn]] void throw_missing() const {
    const std::vector<int> ranks = missing();
    throw Timeout(
        {spec_.rank, ranks.front(), "join", 0},
        fmt::format("rank {} could not connect to rank {} of a world of {} before the deadline: look at their "
                    "logs, and check that the hosts reach each other{}",
                    spec_.rank, fmt::join(ranks, ", "), spec_.world_size, last_error_));
  }

  const TcpSpec& spec_;
  const UniqueFd& listener_;
  const Identity& self_;
  std::vector<Endpoint> endpoints_;
  std::vector<Peer> peers_;
  std::list<Handshake> handshakes_;
  std::vector<int> to_reconnect_;
  Deadline reconnect_at_ = Deadline::after(kPollInterval);
  std::string last_error_;  // of a connection
};

}  // namespace

std::vector<Peer> connect_mesh(Store& store, const TcpSpec& spec, Deadline deadline) {
  check(spec.world_size >= 1 && spec.rank >= 0 && spec.rank < spec.world_size,
        fmt::format("invalid rank {}: expected a rank of a world of {}", spec.rank, spec.world_size));
  const SocketAddress wanted(spec.address, spec.port);
  check(!wanted.is_wildcard(),
        fmt::format("invalid address {}: it is a wildcard; give the address at which the other ranks reach this host",
                    spec.address));
  if (spec.world_size == 1) {
    std::vector<Peer> itself(1);
    return itself;
  }
  const UniqueFd listener = listen_at(wanted, spec.world_size + kMaxPendingHandshakes);
  const Endpoint mine = local_endpoint(spec, SocketAddress::of(listener));
  std::vector<Endpoint> endpoints = exchange_endpoints(store, spec, mine, deadline);
  const Identity self{spec.rank, spec.world_size,
                      RunToken::parse(spec.token.empty() ? endpoints.front().token : spec.token)};
  return MeshRendezvous(spec, listener, self, std::move(endpoints)).connect_all(deadline);
}

}  // namespace gradring::comm::tcp
