// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/socket_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "kernels/base/error.h"

namespace gradring::comm::tcp {
namespace {

constexpr int kStreamFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

/// Sends small messages without delay (Nagle's algorithm off).
void set_no_delay(const UniqueFd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void check_descriptors(const UniqueFd& socket, const char* what) {
  const int reason = errno;
  if (!socket && (reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM))
    throw OutOfDescriptors(fmt::format("{}: {}; raise ulimit -n", what, reason_of(reason)));
}

UniqueFd make_socket(int family) {
  UniqueFd socket(::socket(family, kStreamFlags, 0));
  check_descriptors(socket, "cannot create a TCP socket");
  check<DeviceError>(static_cast<bool>(socket), [&] { return "cannot create a TCP socket: " + reason_of(errno); });
  return socket;
}

}  // namespace

SocketAddress::SocketAddress(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  check(failure == 0 && found, [&] {
    return fmt::format("invalid address '{}': expected a numeric address such as 192.0.2.7 or 2001:db8::7", host);
  });
  std::memcpy(&storage_, found->ai_addr, found->ai_addrlen);
  length_ = found->ai_addrlen;
  read_back();
}

SocketAddress SocketAddress::of(const UniqueFd& socket) {
  SocketAddress address;
  address.length_ = sizeof address.storage_;
  const bool known = ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) == 0;
  check<DeviceError>(known, [&] { return "cannot read the address of a socket: " + reason_of(errno); });
  address.read_back();
  return address;
}

void SocketAddress::read_back() {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int failure =
      ::getnameinfo(get(), length_, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  check<DeviceError>(failure == 0, "cannot convert a socket address to text");
  host_ = host;
  port_ = static_cast<std::uint16_t>(std::atoi(port));
}

bool SocketAddress::is_wildcard() const {
  if (family() == AF_INET) return reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

bool SocketAddress::is_loopback() const {
  constexpr std::uint32_t kNet = 127;
  if (family() == AF_INET) return ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 24 == kNet;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

std::string SocketAddress::to_string() const {
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host_, port_) : fmt::format("{}:{}", host_, port_);
}

UniqueFd listen_at(const SocketAddress& address, int backlog) {
  UniqueFd listener = make_socket(address.family());
  const int on = 1;
  // A group with a fixed port creates its second transport while connections of the first still use the port.
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(listener.get(), address.get(), address.length()) == 0 && ::listen(listener.get(), backlog) == 0)
    return listener;
  const int reason = errno;
  const std::string why = fmt::format("cannot listen at {}: {}; choose another port or an address of this host",
                                      address.to_string(), reason_of(reason));
  if (reason == EADDRINUSE) throw AddressInUse(why);
  throw CannotListen(why);
}

UniqueFd begin_connect(const SocketAddress& address, int* failure) {
  UniqueFd socket = make_socket(address.family());
  set_no_delay(socket);
  const bool failed = ::connect(socket.get(), address.get(), address.length()) != 0 && errno != EINPROGRESS;
  if (failure) *failure = failed ? errno : 0;
  return socket;
}

UniqueFd accept_one(const UniqueFd& listener) {
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  check_descriptors(socket, "cannot accept a connection");
  if (socket) set_no_delay(socket);
  return socket;
}

std::string reason_of(int error_number) { return std::generic_category().message(error_number); }

}  // namespace gradring::comm::tcp
