// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/mesh.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <sstream>

#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"
#include "comm/transport/error.h"
#include "comm/transport/transport.h"
#include "kernels/base/deadline.h"
#include "kernels/base/descriptor_limit.h"
#include "kernels/base/host_name.h"
#include "kernels/base/number_list.h"

namespace gradring::comm::tcp {
namespace {

constexpr int kProtocolVersion = 2;  // of the protocol between ranks

void check_same_world(const TcpGroupOptions& spec, int rank, const Endpoint& mine, const Endpoint& theirs) {
  if (theirs.version == mine.version && theirs.world_size == mine.world_size) return;
  throw Desync(
      {spec.rank, rank, "join", 0},
      fmt::format("ranks do not match: rank {} has world size {} and protocol version {}, rank {} ({}) has world size "
                  "{} and protocol version {}; start all ranks with the same gradring and the same world size",
                  spec.rank, mine.world_size, mine.version, rank, theirs.description(), theirs.world_size,
                  theirs.version));
}

constexpr int kMaxPendingHandshakes = 64;  // of unauthenticated connections, in addition to one per rank
constexpr int kMinPendingHandshakes = 4;   // also where descriptors are few
constexpr int kOwnDescriptors = 16;        // that a rank opens for other purposes while it joins
constexpr std::chrono::seconds kHandshakeTimeout(5);
constexpr std::chrono::milliseconds kPollInterval(50);  // at most, between checks of timeouts

/// Leaves a rank the descriptors that it needs for its peers.
int most_pending_handshakes(int world_size) {
  const auto spare = static_cast<std::int64_t>(free_descriptors()) - world_size - kOwnDescriptors;
  return static_cast<int>(std::clamp<std::int64_t>(spare, kMinPendingHandshakes, kMaxPendingHandshakes));
}

/// Connects one rank to all others.
class MeshRendezvous {
 public:
  MeshRendezvous(const TcpGroupOptions& spec, const UniqueFd& listener, const Identity& self,
                 std::vector<Endpoint> endpoints)
      : spec_(spec), listener_(listener), self_(self), endpoints_(std::move(endpoints)), peers_(endpoints_.size()) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].description = endpoints_[rank].description();
  }

  std::vector<Peer> connect_all(Deadline deadline) {
    for (int peer = 0; peer < spec_.rank; ++peer) connect(peer, deadline);
    while (!missing().empty()) {
      if (deadline.passed()) throw_missing();
      for (Handshake* handshake : wait_for_events(deadline))
        finish(*handshake, handshake->advance_among(handshakes_), deadline);
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
    try {
      handshakes_.push_back(Handshake::dial(SocketAddress(endpoint.host, endpoint.port), self_, peer, deadline));
    } catch (const OutOfDescriptors&) {
      if (!Handshake::drop_oldest(handshakes_)) throw;
      reconnect_later(peer);
    }
  }

  void reconnect_later(int peer) {
    to_reconnect_.push_back(peer);
    reconnect_at_ = Deadline::after(kPollInterval);
  }

  /// Connects again to peers that closed the connection: they may have had too many pending handshakes.
  void reconnect(Deadline deadline) {
    if (!reconnect_at_.passed()) return;
    for (const int peer : std::exchange(to_reconnect_, {})) connect(peer, deadline);
  }

  /// Accepts a limited number of connections, so that a flood does not delay the other handshakes.
  void accept_pending(Deadline deadline) try {
    if (!accept_at_.passed()) return;
    for (int i = 0; i < kMaxPendingHandshakes; ++i) {
      UniqueFd socket = accept_one(listener_);
      if (!socket || !make_room()) return;
      handshakes_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kHandshakeTimeout)));
      finish(handshakes_.back(), handshakes_.back().advance_among(handshakes_), deadline);
      if (handshakes_.back().fd() < 0) handshakes_.pop_back();
    }
  } catch (const OutOfDescriptors&) {
    Handshake::drop_oldest(handshakes_);
    accept_at_ = Deadline::after(kPollInterval);
  }

  /// The limit includes all ranks, because they may connect at the same time and are unauthenticated until their Hello
  /// arrives. False if no pending connection can be dropped.
  bool make_room() {
    const auto dialled = [](const Handshake& handshake) { return handshake.dialled(); };
    const auto accepted = std::ssize(handshakes_) - std::ranges::count_if(handshakes_, dialled);
    return accepted < spec_.world_size + most_pending_ || Handshake::drop_oldest(handshakes_);
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
      throw PeerLost({spec_.rank, peer, "join", 0},
                     fmt::format("rank {} reached a program at {} that is not rank {} of this run ({}): that rank has "
                                 "ended and another program uses its port; look at its log",
                                 spec_.rank, where(peer), peer, peers_[index(peer)].description));
    if (handshake.error_number() == ECONNREFUSED)
      throw PeerLost(
          {spec_.rank, peer, "join", 0},
          fmt::format("rank {} cannot connect to {}: connection refused; rank {} ({}) has ended, look at its log",
                      spec_.rank, where(peer), peer, peers_[index(peer)].description));
    last_error_ =
        fmt::format("; {}: {}", where(peer),
                    handshake.error_number() != 0 ? reason_of(handshake.error_number()) : "connection closed by peer");
    reconnect_later(peer);
  }

  /// Returns the handshakes that can advance, or whose time has passed.
  std::vector<Handshake*> wait_for_events(Deadline deadline) {
    const int listener = accept_at_.passed() ? listener_.get() : -1;
    std::vector<pollfd> events = {{.fd = listener, .events = POLLIN, .revents = 0}};
    for (const Handshake& handshake : handshakes_)
      events.push_back({.fd = handshake.fd(), .events = handshake.interest(), .revents = 0});
    ::poll(events.data(), events.size(), std::min(poll_timeout(deadline), static_cast<int>(kPollInterval.count())));
    std::vector<Handshake*> ready;
    auto event = events.begin() + 1;
    for (Handshake& handshake : handshakes_)
      if ((event++)->revents != 0 || handshake.state() != Handshake::State::going || handshake.overdue())
        ready.push_back(&handshake);
    return ready;
  }

  std::string where(int peer) const {
    return SocketAddress(endpoints_[index(peer)].host, endpoints_[index(peer)].port).to_string();
  }

  [[noreturn]] void throw_missing() const {
    const std::vector<int> ranks = missing();
    throw Timeout({spec_.rank, ranks.front(), "join", 0},
                  fmt::format("rank {} could not connect to rank {} of a world of {} before the deadline: look at "
                              "their logs, and check that the hosts reach each other{}",
                              spec_.rank, number_list(ranks), spec_.world_size, last_error_));
  }

  const TcpGroupOptions& spec_;
  const UniqueFd& listener_;
  const Identity& self_;
  std::vector<Endpoint> endpoints_;
  std::vector<Peer> peers_;
  std::list<Handshake> handshakes_;
  const int most_pending_ = most_pending_handshakes(spec_.world_size);
  Deadline accept_at_ = Deadline::after({});  // later than now: there were no descriptors
  std::vector<int> to_reconnect_;
  Deadline reconnect_at_ = Deadline::after(kPollInterval);
  std::string last_error_;  // of a connection
};

}  // namespace

std::string Endpoint::to_text() const {
  return fmt::format("{} {} {} {} {} {} {}", version, world_size, host, port, pid, token, node);
}

Endpoint Endpoint::parse(const std::string& text) {
  std::istringstream fields(text);
  Endpoint endpoint;
  fields >> endpoint.version >> endpoint.world_size >> endpoint.host >> endpoint.port >> endpoint.pid >>
      endpoint.token >> endpoint.node;
  check<DeviceError>(static_cast<bool>(fields), [&] {
    return "invalid endpoint of a rank in the store: found '" + text +
           "', expected 'VERSION WORLD_SIZE HOST PORT PID TOKEN NODE'";
  });
  return endpoint;
}

std::string Endpoint::description() const { return fmt::format("process {} on {}", pid, node); }

Endpoint local_endpoint(const TcpGroupOptions& spec, const SocketAddress& listening) {
  std::string node = host_name();
  std::replace(node.begin(), node.end(), ' ', '-');
  return {.version = kProtocolVersion,
          .world_size = spec.world_size,
          .host = listening.host(),
          .port = listening.port(),
          .pid = ::getpid(),
          .token = spec.rank == 0 && spec.token.empty() ? RunToken::draw().to_text() : "-",
          .node = std::move(node)};
}

std::vector<Endpoint> exchange_endpoints(Store& store, const TcpGroupOptions& spec, const Endpoint& mine,
                                         Deadline deadline) {
  std::vector<Endpoint> endpoints;
  exchange(store, "tcp/" + spec.name, spec.rank, spec.world_size, mine.to_text(), deadline,
           [&](int rank, const std::string& text) {
             endpoints.push_back(Endpoint::parse(text));
             check_same_world(spec, rank, mine, endpoints.back());
           });
  return endpoints;
}

std::vector<Peer> connect_mesh(Store& store, const TcpGroupOptions& spec, Deadline deadline) {
  check_rank(spec.rank, spec.world_size);
  const SocketAddress wanted(spec.address, spec.port);
  check(!wanted.is_wildcard(), [&] {
    return fmt::format(
        "invalid address {}: it is a wildcard; give the address at which the other ranks reach this host",
        spec.address);
  });
  if (spec.world_size == 1) return std::vector<Peer>(1);
  // Its peers' sockets, the listener, and a file of the store.
  require_descriptors(static_cast<std::size_t>(spec.world_size) + 1,
                      fmt::format("a rank of a world of {}", spec.world_size));
  const UniqueFd listener = listen_at(wanted, spec.world_size + kMaxPendingHandshakes);
  const Endpoint mine = local_endpoint(spec, SocketAddress::of(listener));
  std::vector<Endpoint> endpoints = exchange_endpoints(store, spec, mine, deadline);
  const Identity self{spec.rank, spec.world_size,
                      RunToken::parse(spec.token.empty() ? endpoints.front().token : spec.token)};
  return MeshRendezvous(spec, listener, self, std::move(endpoints)).connect_all(deadline);
}

}  // namespace gradring::comm::tcp
