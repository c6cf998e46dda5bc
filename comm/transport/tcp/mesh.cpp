// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "comm/error.h"
#include "comm/transport/tcp/contact.h"
#include "comm/transport/tcp/handshake.h"
#include "comm/transport/tcp/socket_address.h"
#include "kernels/runtime/poll_timeout.h"

namespace gradring::comm::tcp {
namespace {

constexpr int kMaxStrangers = 64;  // who may stand at the door at once, beside all ranks
constexpr std::chrono::seconds kPatience(5);
constexpr std::chrono::milliseconds kTick(50);  // how often patience and deadline are looked at

/// The meeting of one rank with all others.
class Meeting {
 public:
  Meeting(const TcpSpec& spec, const UniqueFd& listener, const Identity& self, std::vector<Contact> contacts)
      : spec_(spec), listener_(listener), self_(self), contacts_(std::move(contacts)), peers_(contacts_.size()) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].description = contacts_[rank].description();
  }

  std::vector<Peer> hold(Deadline deadline) {
    for (int peer = 0; peer < spec_.rank; ++peer) dial(peer, deadline);
    while (!missing().empty()) {
      if (deadline.passed()) throw_missing();
      sleep(deadline);
      answer();
      for (Handshake& handshake : going_) judge(handshake, handshake.advance(), deadline);
      going_.remove_if([](const Handshake& handshake) { return handshake.fd() < 0; });
      redial(deadline);
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

  void dial(int peer, Deadline deadline) {
    const Contact& contact = contacts_[index(peer)];
    going_.push_back(Handshake::dial(begin_connect(SocketAddress(contact.host, contact.port)), self_, peer, deadline));
  }

  /// Dials once more whoever dropped us; it may have had too many strangers at the door.
  void redial(Deadline deadline) {
    if (!redial_at_.passed()) return;
    for (const int peer : std::exchange(to_redial_, {})) dial(peer, deadline);
  }

  void answer() {
    while (UniqueFd socket = accept_one(listener_)) {
      const auto is_stranger = [](const Handshake& handshake) { return !handshake.dialled(); };
      // Ranks are strangers too until they are proven: all of them may come at once, and none may be turned away.
      if (std::ranges::count_if(going_, is_stranger) >= spec_.world_size + kMaxStrangers)
        going_.erase(std::ranges::find_if(going_, is_stranger));  // who has stood there longest
      going_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kPatience)));
    }
  }

  /// Drops the socket of a handshake that is over, unless it is a peer's now.
  void judge(Handshake& handshake, Handshake::State state, Deadline deadline) {
    if (state == Handshake::State::going) return;
    UniqueFd socket = handshake.release();
    if (state == Handshake::State::proven) {
      UniqueFd& place = peers_[index(handshake.peer())].socket;
      if (!place) place = std::move(socket);
      return;
    }
    if (!handshake.dialled() || deadline.passed()) return;
    const int peer = handshake.peer();
    if (state == Handshake::State::refused)
      throw PeerLost(
          {spec_.rank, peer, "join", 0},
          fmt::format("what answers rank {} at {} is not rank {} of this run ({}): it has ended, and another "
                      "program has its port; look at its log",
                      spec_.rank, where(peer), peer, peers_[index(peer)].description));
    if (handshake.error_number() == ECONNREFUSED)
      throw PeerLost({spec_.rank, peer, "join", 0},
                     fmt::format("nobody listens at {} for rank {}: rank {} ({}) has ended; look at its log",
                                 where(peer), spec_.rank, peer, peers_[index(peer)].description));
    why_ = fmt::format("; {}: {}", where(peer),
                       handshake.error_number() != 0 ? reason_of(handshake.error_number()) : "it hung up");
    to_redial_.push_back(peer);
    redial_at_ = Deadline::after(kTick);
  }

  void sleep(Deadline deadline) {
    std::vector<pollfd> events = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Handshake& handshake : going_)
      events.push_back({.fd = handshake.fd(), .events = handshake.interest(), .revents = 0});
    ::poll(events.data(), events.size(), std::min(poll_timeout(deadline), static_cast<int>(kTick.count())));
  }

  std::string where(int peer) const {
    return SocketAddress(contacts_[index(peer)].host, contacts_[index(peer)].port).to_string();
  }

  [[noreturn]] void throw_missing() const {
    const std::vector<int> ranks = missing();
    throw Timeout(
        {spec_.rank, ranks.front(), "join", 0},
        fmt::format("rank {} could not connect to rank {} of a world of {} before the deadline: look at their "
                    "logs, and whether the hosts reach each other{}",
                    spec_.rank, fmt::join(ranks, ", "), spec_.world_size, why_));
  }

  const TcpSpec& spec_;
  const UniqueFd& listener_;
  const Identity& self_;
  std::vector<Contact> contacts_;
  std::vector<Peer> peers_;
  std::list<Handshake> going_;
  std::vector<int> to_redial_;
  Deadline redial_at_ = Deadline::after(kTick);
  std::string why_;  // the last connection failed
};

}  // namespace

std::vector<Peer> connect_mesh(Store& store, const TcpSpec& spec, Deadline deadline) {
  check(spec.world_size >= 1 && spec.rank >= 0 && spec.rank < spec.world_size,
        fmt::format("rank {} is outside a world of {}", spec.rank, spec.world_size));
  const SocketAddress wanted(spec.address, spec.port);
  check(!wanted.is_wildcard(),
        fmt::format("{} stands for all addresses of this host: name the one that the other ranks reach", spec.address));
  if (spec.world_size == 1) {
    std::vector<Peer> alone(1);
    return alone;
  }
  const UniqueFd listener = listen_at(wanted, spec.world_size + kMaxStrangers);
  const Contact mine = contact_of_this_process(spec, SocketAddress::of(listener));
  std::vector<Contact> contacts = exchange_contacts(store, spec, mine, deadline);
  const Identity self{spec.rank, spec.world_size, RunToken::parse(contacts.front().token)};
  return Meeting(spec, listener, self, std::move(contacts)).hold(deadline);
}

}  // namespace gradring::comm::tcp
