// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "kernels/runtime/unique_fd.h"

namespace gradring::comm::tcp {

/// A numeric IPv4 or IPv6 address and a port. No name is looked up: what was typed is what is used.
class SocketAddress {
 public:
  /// Errors    InvalidArgument if `host` is no numeric address.
  SocketAddress(const std::string& host, std::uint16_t port);
  /// Where a bound socket is.
  static SocketAddress of(const UniqueFd& socket);

  const std::string& host() const { return host_; }
  std::uint16_t port() const { return port_; }
  /// Whether it stands for every address of this host, 0.0.0.0 or [::].
  bool is_wildcard() const;
  /// "127.0.0.1:80", "[::1]:80"
  std::string to_string() const;

  int family() const { return storage_.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }

 private:
  SocketAddress() = default;
  void read_back();

  sockaddr_storage storage_{};
  socklen_t length_ = 0;
  std::string host_;
  std::uint16_t port_ = 0;
};

/// A socket that listens there and nowhere else; port 0 takes any free one.
///
/// Errors    DeviceError that says why not: the port is taken, the address is not this host's.
UniqueFd listen_at(const SocketAddress& address, int backlog);

/// A connection to there that may still be under way; a socket that nobody can connect to fails when it is used.
///
/// Errors    DeviceError if the system gives no socket.
UniqueFd begin_connect(const SocketAddress& address);

/// The next one that stands at the door; empty if nobody does.
///
/// Errors    DeviceError if the system gives no descriptor.
UniqueFd accept_one(const UniqueFd& listener);

/// "Connection refused", ...
std::string reason_of(int error_number);

}  // namespace gradring::comm::tcp
