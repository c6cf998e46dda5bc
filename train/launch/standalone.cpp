// SPDX-License-Identifier: Apache-2.0
#include "train/launch/standalone.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>

#include "kernels/runtime/error.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

std::string random_run_id() {
  std::random_device source;
  const std::uint32_t a = source(), b = source(), c = source(), d = source();
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", a, b >> 16, (b & 0x0fff) | 0x4000,
                     (c >> 16 & 0x3fff) | 0x8000, c & 0xffff, d);
}

int free_tcp_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);  // port 0: the kernel chooses
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool found = socket && ::bind(socket.get(), any, size) == 0 && ::getsockname(socket.get(), any, &size) == 0;
  check<DeviceError>(found,
                     std::string("cannot find a free TCP port for the workers' MASTER_PORT: ") + std::strerror(errno));
  return ntohs(address.sin_port);
}

}  // namespace gradring::train
