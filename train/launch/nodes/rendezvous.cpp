// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "comm/transport/tcp/socket_address.h"
#include "kernels/runtime/deadline.h"
#include "train/launch/host.h"

namespace gradring::train {
namespace {

namespace tcp = comm::tcp;
using tcp::Handshake;
using tcp::SocketAddress;

constexpr int kBacklog = 128;
constexpr std::size_t kMaxPending = 64;
constexpr auto kHandshakeTimeout = std::chrono::seconds(3);
/// 200 unauthenticated connections a second, about 0.1 ms each: 2 % of a core.
constexpr int kMaxAccepted = 4;
constexpr auto kPollInterval = std::chrono::milliseconds(20);
constexpr auto kDialInterval = std::chrono::milliseconds(100);

/// One attempt at one address. Returns the link, or sets `why`.
std::optional<NodeLink> dial(const SocketAddress& address, const tcp::Identity& self, Deadline deadline,
                             std::string& why) {
  Handshake handshake = Handshake::dial(tcp::begin_connect(address), self, 0, deadline);
  for (auto state = handshake.advance();; state = handshake.advance()) {
    if (state == Handshake::State::proven) return NodeLink(handshake.release());
    if (state == Handshake::State::refused && deadline.passed()) return why = "no answer in time", std::nullopt;
    if (state == Handshake::State::refused)
      throw InvalidArgument(
          fmt::format("{} is the leader of another run: --rdzv-id and GRADRING_TOKEN must be the same on all nodes",
                      address.to_string()));
    if (state == Handshake::State::closed) {
      why = handshake.error_number() == 0
                ? "it closed the connection; expected the same --rdzv-id and GRADRING_TOKEN there"
                : tcp::reason_of(handshake.error_number());
      return std::nullopt;
    }
    pollfd ready = {handshake.fd(), handshake.interest(), 0};
    ::poll(&ready, 1, poll_timeout(deadline));
  }
}

/// Connects without a token, sends nothing, and returns why the address cannot be used.
std::string why_without_token(const SocketAddress& address, Deadline deadline) {
  const UniqueFd socket = tcp::begin_connect(address);
  pollfd ready = {socket.get(), POLLOUT, 0};
  while (::poll(&ready, 1, poll_timeout(deadline)) <= 0)  // returns early after a nap or a signal
    if (deadline.passed()) return "no answer in time";
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return tcp::reason_of(error);
  return "a process listens, but no token for this run id was found: it belongs to another run or user, or is still "
         "starting; set the same GRADRING_TOKEN on every node";
}

}  // namespace

Acceptor::Acceptor(const std::string& host, int port, const tcp::Identity& self) : self_(self) {
  std::string tried;
  bool in_use = false;
  for (const SocketAddress& address : addresses_of(host, port)) try {
      listeners_.push_back(tcp::listen_at(address, kBacklog));
    } catch (const DeviceError& error) {
      tried += fmt::format("\n  {}", error.what());
      in_use |= tried.find(tcp::reason_of(EADDRINUSE)) != std::string::npos;
    }
  // If another process has one of several addresses, nodes could join two different runs.
  const std::string where = "cannot listen at " + endpoint_text(host, port);
  if (in_use) throw AddressInUse(where + ":" + tried);
  if (listeners_.empty()) throw DeviceError(where + ", which must be an address of the leading node:" + tried);
}

std::vector<int> Acceptor::fds() const {
  std::vector<int> fds;
  if (next_poll_) return fds;
  for (const UniqueFd& listener : listeners_) fds.push_back(listener.get());
  for (const Handshake& handshake : pending_) fds.push_back(handshake.fd());
  return fds;
}

std::list<NodeLink> Acceptor::admit() {
  if (next_poll_ && !next_poll_->passed()) return {};
  next_poll_.reset();
  std::vector<pollfd> sources;
  for (const int fd : fds()) sources.push_back({fd, POLLIN, 0});
  if (::poll(sources.data(), sources.size(), 0) > 0) next_poll_ = Deadline::after(kPollInterval);

  std::list<NodeLink> admitted;
  const pollfd* source = sources.data() + listeners_.size();
  for (auto it = pending_.begin(); it != pending_.end(); ++source)
    it = source->revents != 0 || it->overdue() ? advance(it, admitted) : std::next(it);
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (sources[i].revents != 0) accept(listeners_[i], admitted);
  return admitted;
}

void Acceptor::accept(const UniqueFd& listener, std::list<NodeLink>& admitted) {
  for (int i = 0; i < kMaxAccepted; ++i) {
    UniqueFd socket = tcp::accept_one(listener);
    if (!socket) break;
    if (pending_.size() >= kMaxPending) {
      const auto oldest = std::ranges::find_if(pending_, &Handshake::unauthenticated);
      if (oldest == pending_.end()) break;
      pending_.erase(oldest);
    }
    pending_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kHandshakeTimeout)));
    advance(std::prev(pending_.end()), admitted);
  }
}

Acceptor::Pending Acceptor::advance(Pending handshake, std::list<NodeLink>& admitted) {
  const auto state = handshake->advance_among(pending_);
  if (state == Handshake::State::proven) admitted.emplace_back(handshake->release());
  return state == Handshake::State::going ? std::next(handshake) : pending_.erase(handshake);
}

std::string endpoint_text(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::optional<NodeLink> dial_leader(const std::string& host, int port, const FindIdentity& find_identity,
                                    Deadline deadline, std::string& tried) {
  while (true) {
    tried.clear();
    const auto self = find_identity();
    try {
      for (const SocketAddress& address : addresses_of(host, port)) {
        std::string why;
        if (!self) why = why_without_token(address, deadline);
        if (auto link = self ? dial(address, *self, deadline, why) : std::nullopt) return link;
        tried += fmt::format("\n  {}: {}", address.to_string(), why);
      }
    } catch (const DeviceError& error) {  // a name that cannot be resolved yet
      tried += fmt::format("\n  {}", error.what());
    }
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(deadline.nap(kDialInterval));
  }
}

}  // namespace gradring::train
