// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/node_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "comm/transport/tcp/socket_address.h"
#include "kernels/runtime/deadline.h"
#include "train/launch/nodes/message.h"

namespace gradring::train {
namespace {

constexpr auto kPatienceOfSending = std::chrono::seconds(NodeLink::kSilenceSeconds);

void set(int socket, int level, int option, int value) { ::setsockopt(socket, level, option, &value, sizeof value); }

/// The kernel asks an idle peer every second, and gives up what it cannot deliver.
void notice_silence(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, NodeLink::kSilenceSeconds - 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, NodeLink::kSilenceSeconds * 1000);
}

}  // namespace

NodeLink::NodeLink(UniqueFd socket) : socket_(std::move(socket)) { notice_silence(socket_.get()); }

std::string NodeLink::own_address() const { return comm::tcp::SocketAddress::of(socket_).host(); }

void NodeLink::close(const std::string& reason) {
  if (!socket_) return;
  socket_.reset();
  reason_ = reason;
}

void NodeLink::send(const nlohmann::json& message) {
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const auto deadline = Deadline::after(kPatienceOfSending);
  for (std::size_t sent = 0; sent < text.size() && socket_;) {
    const ssize_t count = ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    if (count >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return close(std::strerror(errno));
    pollfd room = {socket_.get(), POLLOUT, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    if (::poll(&room, 1, static_cast<int>(left)) == 0) return close("it takes no message");
  }
}

std::vector<nlohmann::json> NodeLink::receive() {
  char buffer[16 * 1024];
  std::vector<nlohmann::json> messages;
  while (socket_) {
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      close(count == 0 ? "it closed the connection" : std::strerror(errno));
      break;
    }
    incoming_.append(buffer, static_cast<std::size_t>(count));
    for (auto end = incoming_.find('\n'); end != std::string::npos; end = incoming_.find('\n')) {
      messages.push_back(nlohmann::json::parse(incoming_.substr(0, end), nullptr, false));
      incoming_.erase(0, end + 1);
      if (messages.back().is_object() && messages.back().contains("say")) continue;
      messages.pop_back();
      close("it sends what is no message: is it of the same version?");
      return messages;
    }
    if (incoming_.size() > kLongestMessage) close("it sends too long a message");
  }
  return messages;
}

}  // namespace gradring::train
