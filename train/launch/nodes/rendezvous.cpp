// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "comm/transports/tcp/socket_address.h"
#include "kernels/base/deadline.h"
#include "kernels/base/descriptor_limit.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

namespace tcp = comm::tcp;
using tcp::Handshake;
using tcp::SocketAddress;

constexpr int kBacklog = 128;
constexpr std::size_t kMinPending = 4, kMaxPending = 64;
constexpr auto kHandshakeTimeout = std::chrono::seconds(3);
/// 200 unauthenticated connections a second, about 0.1 ms each: 2 % of a core.
constexpr int kMaxAccepted = 4;
constexpr auto kPollInterval = std::chrono::milliseconds(20);
/// A leader that was suspended, or whose host was down, is dialled again.
constexpr auto kAnswerTimeout = std::chrono::seconds(5);

std::vector<SocketAddress> addresses_to_listen(const std::string& host, int port) {
  if (!host.empty()) return addresses_of(host, port);
  const auto number = static_cast<std::uint16_t>(port);
  return {SocketAddress("0.0.0.0", number), SocketAddress("::", number)};
}

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

/// Why a handshake has failed. Throws if the peer belongs to another run.
std::string why_failed(const Dialled& attempt) {
  const Handshake& handshake = attempt.handshake;
  if (handshake.state() == Handshake::State::closed)
    return handshake.error_number() == 0
               ? "it closed the connection; expected the same --rdzv-id and GRADRING_TOKEN there"
               : tcp::reason_of(handshake.error_number());
  if (!handshake.overdue())
    throw InvalidArgument(
        fmt::format("{} is the leader of another run: --rdzv-id and GRADRING_TOKEN must be the same on all nodes",
                    attempt.address.to_string()));
  return is_connected(handshake.fd()) ? "a process listens there, but does not answer" : "no answer in time";
}

std::list<Dialled> dial_all(const std::vector<SocketAddress>& addresses, const tcp::Identity& self, Deadline deadline,
                            Reasons& reasons) {
  std::list<Dialled> attempts;
  for (const SocketAddress& address : addresses) try {
      attempts.push_back({address, Handshake::dial(address, self, 0, deadline)});
    } catch (const DeviceError& error) {  // no socket of this family
      reasons.add(fmt::format("{}: {}", address.to_string(), error.what()));
    }
  return attempts;
}

/// The link of the first attempt that succeeds.
std::optional<NodeLink> first_link(std::list<Dialled> attempts, Deadline deadline, Reasons& reasons) {
  while (!attempts.empty()) {
    std::vector<pollfd> sources;
    for (auto it = attempts.begin(); it != attempts.end();) {
      const auto state = it->handshake.advance();
      if (state == Handshake::State::proven) return NodeLink(it->handshake.release());
      if (state == Handshake::State::going) {
        sources.push_back({it->handshake.fd(), it->handshake.interest(), 0});
        ++it;
      } else {
        reasons.add(fmt::format("{}: {}", it->address.to_string(), why_failed(*it)));
        it = attempts.erase(it);
      }
    }
    if (!sources.empty()) ::poll(sources.data(), sources.size(), poll_timeout(deadline));
  }
  return std::nullopt;
}

/// Connects without a token, sends nothing, and returns why the address cannot be used.
std::string why_without_token(const SocketAddress& address, Deadline deadline) {
  int error = 0;
  const UniqueFd socket = tcp::begin_connect(address, &error);
  if (error != 0) return tcp::reason_of(error);
  pollfd ready = {socket.get(), POLLOUT, 0};
  while (::poll(&ready, 1, poll_timeout(deadline)) <= 0)  // returns early after a nap or a signal
    if (deadline.passed()) return "no answer in time";
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return tcp::reason_of(error);
  return "a process listens, but no token for this run id was found: it belongs to another run or user, or is still "
         "starting; set the same GRADRING_TOKEN on every node";
}

}  // namespace

Acceptor::Acceptor(const std::string& listen, int port, const tcp::Identity& self, std::size_t own_descriptors)
    : self_(self), own_descriptors_(own_descriptors) {
  std::string tried;
  for (const SocketAddress& address : addresses_to_listen(listen, port)) try {
      listeners_.push_back(tcp::listen_at(address, kBacklog));
    } catch (const tcp::AddressInUse&) {
      throw;
    } catch (const DeviceError& error) {
      tried += fmt::format("\n  {}", error.what());
    }
  if (listeners_.empty())
    throw DeviceError(fmt::format("cannot listen at {}, which must be an address of this host:{}",
                                  endpoint_text(listen, port), tried));
}

std::string Acceptor::where() const {
  Reasons list;
  for (const UniqueFd& listener : listeners_) list.add(SocketAddress::of(listener).to_string());
  return list.text();
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
    if (sources[i].revents != 0) accept(listeners_[i], most_pending(), admitted);
  return admitted;
}

std::size_t Acceptor::most_pending() const {
  const std::size_t available = free_descriptors() + pending_.size();
  return std::clamp(available - std::min(available, own_descriptors_), kMinPending, kMaxPending);
}

void Acceptor::accept(const UniqueFd& listener, std::size_t most, std::list<NodeLink>& admitted) try {
  for (int i = 0; i < kMaxAccepted; ++i) {
    UniqueFd socket = tcp::accept_one(listener);
    if (!socket) break;
    while (pending_.size() >= most)
      if (!Handshake::drop_oldest(pending_)) return;
    pending_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kHandshakeTimeout)));
    advance(std::prev(pending_.end()), admitted);
  }
} catch (const tcp::OutOfDescriptors&) {  // the next poll tries again
  Handshake::drop_oldest(pending_);
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

void Reasons::add(const std::string& reason) {
  if (text_.find(reason) == std::string::npos) text_ += (text_.empty() ? "" : ", ") + reason;
}

std::optional<NodeLink> dial_leader(const std::string& host, int port, const std::optional<tcp::Identity>& self,
                                    Deadline deadline, Reasons& reasons) try {
  const auto answer_by = Deadline::after(std::min<std::chrono::nanoseconds>(deadline.remaining(), kAnswerTimeout));
  const std::vector<SocketAddress> addresses = addresses_of(host, port);
  if (self) return first_link(dial_all(addresses, *self, answer_by, reasons), answer_by, reasons);
  for (const SocketAddress& address : addresses)
    reasons.add(fmt::format("{}: {}", address.to_string(), why_without_token(address, answer_by)));
  return std::nullopt;
} catch (const DeviceError& error) {  // such as a name that cannot be resolved yet
  reasons.add(error.what());
  return std::nullopt;
}

}  // namespace gradring::train
