// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/resolve.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <future>
#include <memory>

#include "kernels/base/deadline.h"

namespace gradring::comm::tcp {

std::vector<SocketAddress> addresses_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  auto look_up = std::async(std::launch::async, [&] { return ::getaddrinfo(host.c_str(), nullptr, &hints, &found); });
  // Name servers may be slow; RunningClock takes a long time without a call to now() for time that this process was
  // stopped.
  while (look_up.wait_for(RunningClock::kLongestNap) != std::future_status::ready) RunningClock::now();
  if (const int failure = look_up.get(); failure != 0)
    throw UnresolvedName(fmt::format("cannot resolve the host name '{}': {}", host, ::gai_strerror(failure)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* it = list.get(); it != nullptr; it = it->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(it->ai_addr, it->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.emplace_back(text, static_cast<std::uint16_t>(port));
  }
  return addresses;
}

std::string endpoint_text(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace gradring::comm::tcp
