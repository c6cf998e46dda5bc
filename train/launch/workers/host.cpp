// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/host.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <random>

#include "comm/sockets/resolve.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "kernels/base/host_name.h"
#include "train/options/parse_value.h"

namespace gradring::train {
namespace {

using comm::tcp::addresses_of;
using comm::tcp::SocketAddress;

/// "nvidia0", but not "nvidiactl".
bool is_gpu(const std::string& file) {
  constexpr std::string_view kPrefix = "nvidia";
  return file.starts_with(kPrefix) && file.size() > kPrefix.size() &&
         std::all_of(file.begin() + kPrefix.size(), file.end(), [](unsigned char it) { return std::isdigit(it) != 0; });
}

/// Only addresses of this host's interfaces can be bound.
bool can_bind(const SocketAddress& address) {
  const UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), address.get(), address.length()) == 0;
}

}  // namespace

std::string random_run_id() {
  std::random_device source;
  const std::uint32_t a = source(), b = source(), c = source(), d = source();
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", a, b >> 16, (b & 0x0fff) | 0x4000,
                     (c >> 16 & 0x3fff) | 0x8000, c & 0xffff, d);
}

int free_tcp_port() {
  constexpr int kAnyPort = 0;
  for (const char* all : {"::", "0.0.0.0"}) {  // [::] includes IPv4; a host may have IPv4 only
    const SocketAddress address(all, kAnyPort);
    const UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int ipv6_only = 0;
    if (address.family() == AF_INET6)
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &ipv6_only, sizeof ipv6_only);
    if (socket && ::bind(socket.get(), address.get(), address.length()) == 0) return SocketAddress::of(socket).port();
  }
  throw DeviceError(std::string("cannot find a free TCP port for the workers' MASTER_PORT: ") + std::strerror(errno));
}

int visible_gpus(const VariableLookup& lookup, const std::filesystem::path& devices) {
  std::error_code error;
  int present = 0;
  for (const auto& entry : std::filesystem::directory_iterator(devices, error))
    present += is_gpu(entry.path().filename());
  const auto listed = lookup("CUDA_VISIBLE_DEVICES");
  if (!listed) return present;
  const auto names = comma_separated(*listed);
  // The driver ignores the list from the first invalid entry on.
  const auto end = std::ranges::find_if(names, [](const std::string& name) { return name.empty() || name == "-1"; });
  return std::min(present, static_cast<int>(end - names.begin()));
}

bool is_wildcard_address(const std::string& host) try {
  return SocketAddress(host, 0).is_wildcard();
} catch (const InvalidArgument&) {  // a name
  return false;
}

bool is_this_host(const std::string& host) {
  constexpr int kAnyPort = 0;
  return host == host_name() || std::ranges::any_of(addresses_of(host, kAnyPort), can_bind);
}

std::string own_address(const std::string& host) {
  constexpr int kAnyPort = 0;
  std::vector<SocketAddress> own = addresses_of(host, kAnyPort);
  std::erase_if(own, [](const SocketAddress& address) { return !can_bind(address); });
  if (own.empty())
    throw InvalidArgument(
        fmt::format("'{}' is not an address of this host; name one that 'ip address' lists with --local-addr", host));
  const auto reachable = std::ranges::find_if_not(own, &SocketAddress::is_loopback);
  return (reachable == own.end() ? own.front() : *reachable).host();
}

}  // namespace gradring::train
