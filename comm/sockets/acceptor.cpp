// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/acceptor.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <iterator>

#include "comm/sockets/resolve.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/descriptor_limit.h"

namespace gradring::comm::tcp {
namespace {

/// Connections that may wait to be accepted: so many and one for each peer, up to the most. Behind as many
/// unauthenticated ones a peer waits for 2.5 s, and it gives up after 5 s.
constexpr int kBacklog = 128, kMaxBacklog = 512;
constexpr std::size_t kMinPending = 4, kMaxPending = 64;
constexpr auto kHandshakeTimeout = std::chrono::seconds(3);
/// At a time, of peers that have not shown that they know the token: 200 a second, about 0.1 ms each: 2 % of a core.
constexpr int kMaxUnauthenticated = 4;
constexpr auto kPollInterval = std::chrono::milliseconds(20);

std::vector<SocketAddress> addresses_to_listen(const std::string& host, int port) {
  if (!host.empty()) return addresses_of(host, port);
  const auto number = static_cast<std::uint16_t>(port);
  return {SocketAddress("0.0.0.0", number), SocketAddress("::", number)};
}

}  // namespace

Acceptor::Acceptor(const std::string& listen, int port, const Identity& self, int peers, std::size_t own_descriptors)
    : self_(self), own_descriptors_(own_descriptors) {
  const int backlog = kBacklog + std::min(peers, kMaxBacklog - kBacklog);
  std::string tried;
  for (const SocketAddress& address : addresses_to_listen(listen, port)) try {
      listeners_.push_back(listen_at(address, backlog));
    } catch (const AddressInUse&) {
      throw;
    } catch (const DeviceError& error) {
      tried += fmt::format("\n  {}", error.what());
    }
  if (listeners_.empty())
    throw CannotListen(fmt::format("cannot listen at {}, which must be an address of this host:{}",
                                   endpoint_text(listen, port), tried));
}

std::string Acceptor::where() const {
  std::string list;
  for (const UniqueFd& listener : listeners_)
    list += (list.empty() ? "" : ", ") + SocketAddress::of(listener).to_string();
  return list;
}

std::vector<int> Acceptor::fds() const {
  std::vector<int> fds;
  if (next_poll_) return fds;
  for (const UniqueFd& listener : listeners_) fds.push_back(listener.get());
  for (const Handshake& handshake : pending_) fds.push_back(handshake.fd());
  return fds;
}

std::list<Admitted> Acceptor::admit() {
  if (next_poll_ && !next_poll_->passed()) return {};
  next_poll_.reset();
  std::vector<pollfd> sources;
  for (const int fd : fds()) sources.push_back({fd, POLLIN, 0});
  if (::poll(sources.data(), sources.size(), 0) > 0) next_poll_ = Deadline::after(kPollInterval);

  std::list<Admitted> admitted;
  const pollfd* source = sources.data() + listeners_.size();
  for (auto it = pending_.begin(); it != pending_.end(); ++source)
    it = source->revents != 0 || it->overdue() ? advance(it, admitted) : std::next(it);
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (sources[i].revents != 0) accept(listeners_[i], most_pending(), admitted);
  return admitted;
}

std::size_t Acceptor::most_pending() const {
  const std::size_t available = free_descriptors() + pending_.size();
  return std::clamp(available - std::min(available, own_descriptors_), kMinPending, kMaxPending);
}

/// A peer has sent its Hello when it is accepted, so that one with a proof does not count as unauthenticated.
void Acceptor::accept(const UniqueFd& listener, std::size_t most, std::list<Admitted>& admitted) try {
  const auto is_full = [&] {
    return pending_.size() >= most && std::ranges::none_of(pending_, &Handshake::unauthenticated);
  };
  for (int unauthenticated = 0; unauthenticated < kMaxUnauthenticated && !is_full();) {
    UniqueFd socket = accept_one(listener);
    if (!socket) break;
    while (pending_.size() >= most && Handshake::drop_oldest(pending_)) {
    }
    const std::size_t others = pending_.size();
    pending_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kHandshakeTimeout)));
    advance(std::prev(pending_.end()), admitted);
    if (pending_.size() == others || pending_.back().unauthenticated()) ++unauthenticated;
  }
} catch (const OutOfDescriptors&) {  // the next poll tries again
  Handshake::drop_oldest(pending_);
}

Acceptor::Pending Acceptor::advance(Pending handshake, std::list<Admitted>& admitted) {
  const auto state = handshake->advance_among(pending_);
  if (state == Handshake::State::proven) admitted.push_back({handshake->release(), handshake->peer()});
  return state == Handshake::State::going ? std::next(handshake) : pending_.erase(handshake);
}

}  // namespace gradring::comm::tcp
