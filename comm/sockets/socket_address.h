// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "kernels/base/error.h"
#include "kernels/base/file.h"

namespace gradring::comm::tcp {

/// This process, or the system, has no descriptor or memory left for a socket.
struct OutOfDescriptors : DeviceError {
  using DeviceError::DeviceError;
};

struct CannotListen : DeviceError {
  using DeviceError::DeviceError;
};

/// Another process listens there.
struct AddressInUse : CannotListen {
  using CannotListen::CannotListen;
};

/// A numeric IPv4 or IPv6 address and a port. Host names are not resolved.
class SocketAddress {
 public:
  /// Errors    InvalidArgument if `host` is not a numeric address.
  SocketAddress(const std::string& host, std::uint16_t port);
  /// The local address of a bound socket.
  static SocketAddress of(const UniqueFd& socket);

  const std::string& host() const { return host_; }
  std::uint16_t port() const { return port_; }
  /// Whether it is 0.0.0.0 or [::], all addresses of this host.
  bool is_wildcard() const;
  /// Whether it is in 127.0.0.0/8 or [::1]: other hosts cannot connect to it.
  bool is_loopback() const;
  /// For example "127.0.0.1:80" or "[::1]:80".
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

/// A listening non-blocking socket; port 0 takes any free port. One at [::] accepts no IPv4.
///
/// Errors    AddressInUse; CannotListen with the reason, such as an address that does not belong to this host.
UniqueFd listen_at(const SocketAddress& address, int backlog);

/// Starts a non-blocking connect. If it fails later, the first use of the socket reports the error; if it fails at once,
/// as without a route, only `failure` does: errno, else 0.
///
/// Errors    OutOfDescriptors; DeviceError if this host does not support the address family.
UniqueFd begin_connect(const SocketAddress& address, int* failure = nullptr);

/// Accepts the next pending connection; empty if there is none.
///
/// Errors    OutOfDescriptors: the connection stays pending, so that poll() returns at once as long as it does.
UniqueFd accept_one(const UniqueFd& listener);

/// The text of an errno value: "Connection refused".
std::string reason_of(int error_number);

}  // namespace gradring::comm::tcp
