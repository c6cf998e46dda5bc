// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/meeting.h"

#include <fmt/format.h>
#include <netdb.h>
#include <openssl/sha.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "comm/transport/tcp/socket_address.h"
#include "kernels/runtime/poll_timeout.h"

namespace gradring::train {
namespace {

namespace tcp = comm::tcp;
using tcp::Handshake;
using tcp::SocketAddress;

constexpr int kBacklog = 128;
constexpr std::size_t kMostStrangers = 64;
constexpr auto kPatienceWithStrangers = std::chrono::seconds(3);
/// 200 strangers a second, of about 0.1 ms each: 2 % of a core.
constexpr int kMostAtALook = 4;
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
constexpr auto kBetweenDials = std::chrono::milliseconds(100);

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// All addresses of a name; numeric ones stand for themselves.
std::vector<SocketAddress> addresses_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); failure != 0)
    throw DeviceError(fmt::format("the name '{}' leads nowhere: {}", host, ::gai_strerror(failure)));
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* it = list.get(); it != nullptr; it = it->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(it->ai_addr, it->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.emplace_back(text, static_cast<std::uint16_t>(port));
  }
  return addresses;
}

/// One attempt at one address. The link, or why not.
std::optional<NodeLink> dial(const SocketAddress& address, const tcp::Identity& self, Deadline deadline,
                             std::string& why) {
  Handshake handshake = Handshake::dial(tcp::begin_connect(address), self, 0, deadline);
  for (auto state = handshake.advance();; state = handshake.advance()) {
    if (state == Handshake::State::proven) return NodeLink(handshake.release());
    if (state == Handshake::State::refused && deadline.passed()) return why = "no answer in time", std::nullopt;
    if (state == Handshake::State::refused)
      throw InvalidArgument(
          fmt::format("{} is the master of another run: --rdzv-id and GRADRING_TOKEN must be the same on "
                      "all nodes",
                      address.to_string()));
    if (state == Handshake::State::closed) {
      why = handshake.error_number() == 0 ? "it closed the connection: another run id or token there?"
                                          : tcp::reason_of(handshake.error_number());
      return std::nullopt;
    }
    pollfd ready = {handshake.fd(), handshake.interest(), 0};
    ::poll(&ready, 1, std::min(poll_timeout(deadline), 1000));
  }
}

}  // namespace

tcp::RunToken run_secret(const std::string& token, const std::string& run_id) {
  const std::string text = token.empty() ? "gradring run " + run_id : "gradring token " + token + "\n" + run_id;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string digits;
  for (const unsigned char byte : digest) digits += fmt::format("{:02x}", byte);
  return tcp::RunToken::parse(digits);
}

Doorway::Doorway(const std::string& host, int port, const tcp::Identity& self) : self_(self) {
  std::string tried;
  bool taken = false;
  for (const SocketAddress& address : addresses_of(host, port)) try {
      listeners_.push_back(tcp::listen_at(address, kBacklog));
    } catch (const DeviceError& error) {
      tried += fmt::format("\n  {}", error.what());
      taken |= tried.find(tcp::reason_of(EADDRINUSE)) != std::string::npos;
    }
  // Of a name with several addresses somebody else may have one: two doors would lead to two runs.
  const std::string where = "cannot listen at " + endpoint_text(host, port);
  if (taken) throw DoorTaken(where + ":" + tried);
  if (listeners_.empty()) throw DeviceError(where + ", which must be an address of the leading node:" + tried);
}

std::vector<int> Doorway::fds() const {
  std::vector<int> fds;
  if (next_look_) return fds;
  for (const UniqueFd& listener : listeners_) fds.push_back(listener.get());
  for (const Handshake& stranger : strangers_) fds.push_back(stranger.fd());
  return fds;
}

std::list<NodeLink> Doorway::admit() {
  if (next_look_ && !next_look_->passed()) return {};
  next_look_.reset();
  std::vector<pollfd> sources;
  for (const int fd : fds()) sources.push_back({fd, POLLIN, 0});
  if (::poll(sources.data(), sources.size(), 0) > 0) next_look_ = Deadline::after(kBetweenLooks);

  std::list<NodeLink> admitted;
  const pollfd* source = sources.data() + listeners_.size();
  for (auto it = strangers_.begin(); it != strangers_.end(); ++source)
    it = source->revents != 0 || it->overdue() ? go_on_with(it, admitted) : std::next(it);
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (sources[i].revents != 0) answer(listeners_[i], admitted);
  return admitted;
}

void Doorway::answer(const UniqueFd& listener, std::list<NodeLink>& admitted) {
  for (int i = 0; i < kMostAtALook; ++i) {
    UniqueFd socket = tcp::accept_one(listener);
    if (!socket) break;
    if (strangers_.size() >= kMostStrangers) strangers_.pop_front();  // who has stood there longest is no agent
    strangers_.push_back(Handshake::answer(std::move(socket), self_, Deadline::after(kPatienceWithStrangers)));
    go_on_with(std::prev(strangers_.end()), admitted);
  }
}

Doorway::Stranger Doorway::go_on_with(Stranger stranger, std::list<NodeLink>& admitted) {
  const auto state = stranger->advance();
  if (state == Handshake::State::proven) admitted.emplace_back(stranger->release());
  return state == Handshake::State::going ? std::next(stranger) : strangers_.erase(stranger);
}

std::string endpoint_text(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::optional<NodeLink> dial_leader(const std::string& host, int port, const tcp::Identity& self, Deadline deadline,
                                    std::string& tried) {
  while (true) {
    tried.clear();
    try {
      for (const SocketAddress& address : addresses_of(host, port)) {
        std::string why;
        if (auto link = dial(address, self, deadline, why)) return link;
        tried += fmt::format("\n  {}: {}", address.to_string(), why);
      }
    } catch (const DeviceError& error) {  // a name that is not known yet
      tried += fmt::format("\n  {}", error.what());
    }
    if (deadline.passed()) return std::nullopt;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kBetweenDials, deadline.remaining()));
  }
}

}  // namespace gradring::train
