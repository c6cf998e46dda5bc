// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "comm/sockets/resolve.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/deadline.h"

namespace gradring::train {
namespace {

namespace tcp = comm::tcp;
using tcp::SocketAddress;

/// A leader that was suspended, or whose host was down, is dialled again.
constexpr auto kAnswerTimeout = std::chrono::seconds(5);

constexpr tcp::DialAdvice kAdvice = {
    .closed = "it closed the connection; expected the same --rdzv-id and GRADRING_TOKEN there",
    .rejected = "the leader of another run: --rdzv-id and GRADRING_TOKEN must be the same on all nodes"};

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

std::optional<NodeLink> dial_leader(const std::string& host, int port, const std::optional<tcp::Identity>& self,
                                    Deadline deadline, Reasons& reasons) try {
  const auto answer_by = Deadline::after(std::min<std::chrono::nanoseconds>(deadline.remaining(), kAnswerTimeout));
  const std::vector<SocketAddress> addresses = tcp::addresses_of(host, port);
  if (self) {
    auto leader = tcp::dial_first(addresses, *self, 0, kAdvice, answer_by, reasons);
    return leader ? std::optional(NodeLink(std::move(leader->socket))) : std::nullopt;
  }
  for (const SocketAddress& address : addresses)
    reasons.add(fmt::format("{}: {}", address.to_string(), why_without_token(address, answer_by)));
  return std::nullopt;
} catch (const DeviceError& error) {  // such as a name that cannot be resolved yet
  reasons.add(error.what());
  return std::nullopt;
}

}  // namespace gradring::train
