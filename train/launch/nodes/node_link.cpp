// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/node_link.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "comm/sockets/socket_address.h"
#include "kernels/base/deadline.h"
#include "train/launch/nodes/message.h"

namespace gradring::train {
namespace {

/// Limits time and memory for a peer that sends without a pause.
constexpr int kMaxNodeReads = 64;

void set(int socket, int level, int option, std::int64_t number) {
  const int value = static_cast<int>(number);
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// Makes the kernel probe an idle peer every second and close the connection if it does not acknowledge.
void enable_keepalive(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, NodeLink::kHostSilence.count() - 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, std::chrono::milliseconds(NodeLink::kHostSilence).count());
}

}  // namespace

NodeLink::NodeLink(UniqueFd socket) : socket_(std::move(socket)) { enable_keepalive(socket_.get()); }

std::string NodeLink::own_address() const { return comm::tcp::SocketAddress::of(socket_).host(); }

void NodeLink::close(const std::string& reason) {
  if (!socket_) return;
  socket_.reset();
  unsent_.clear();
  reason_ = reason;
}

void NodeLink::send(const nlohmann::json& message) {
  if (!socket_) return;
  const auto now = Clock::now();
  if (unsent_.empty()) last_sent_ = now;
  unsent_ += message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  send_unsent(now);
  if (unsent_.size() > kMaxUnsentBytes) close(fmt::format("it is {} bytes behind", unsent_.size()));
}

void NodeLink::send_unsent(Clock::time_point now) {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const ssize_t count = ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return close(std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, sent);
  if (sent > 0 || unsent_.empty() || peer_is_paused_) last_sent_ = now;
  if (now - last_sent_ > kHostSilence) close(fmt::format("it accepted no data for {} s", kHostSilence.count()));
}

void NodeLink::flush(std::span<NodeLink* const> links) {
  for (const auto deadline = Deadline::after(kHostSilence);;) {
    std::vector<pollfd> behind;
    for (NodeLink* link : links) {
      link->send_unsent();
      if (!link->unsent_.empty()) behind.push_back({link->socket_.get(), POLLOUT, 0});
    }
    if (behind.empty() || deadline.passed()) return;
    ::poll(behind.data(), behind.size(), poll_timeout(deadline));
  }
}

std::vector<nlohmann::json> NodeLink::receive(std::size_t most) {
  read();
  const auto end = received_.begin() + static_cast<std::ptrdiff_t>(std::min(most, received_.size()));
  std::vector<nlohmann::json> messages(std::move_iterator(received_.begin()), std::move_iterator(end));
  received_.erase(received_.begin(), end);
  return messages;
}

void NodeLink::read() {
  char buffer[16 * 1024];
  for (int i = 0; i < kMaxNodeReads && socket_; ++i) {
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      close(count == 0 ? "it closed the connection" : std::strerror(errno));
      break;
    }
    last_heard_ = Clock::now();
    incoming_.append(buffer, static_cast<std::size_t>(count));
    for (auto end = incoming_.find('\n'); end != std::string::npos; end = incoming_.find('\n')) {
      const std::string line = incoming_.substr(0, end);
      incoming_.erase(0, end + 1);
      if (!parse(line)) return close("it sent an invalid message; run the same version of gradring on all nodes");
    }
    if (incoming_.size() > kMaxMessageBytes)
      close(fmt::format("it sent a message of more than {} bytes", kMaxMessageBytes));
  }
}

/// Any message ends the peer's pause. Heartbeats are not returned by receive().
bool NodeLink::parse(const std::string& line) {
  nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
  if (!message.is_object() || !message.contains("say")) return false;
  const bool is_beat = message["say"] == "beat";
  peer_is_paused_ = is_beat && message.contains("paused");
  if (!is_beat) received_.push_back(std::move(message));
  return true;
}

void NodeLink::beat(Clock::time_point now) {
  send_unsent(now);
  if (!socket_ || now - last_beat_ < kBetweenBeats) return;
  last_beat_ = now;
  if (!peer_is_paused_ && unsent_.empty()) send({{"say", "beat"}});
}

bool NodeLink::peer_is_silent(Clock::time_point now) const {
  return socket_ && !peer_is_paused_ && now - last_heard_ > kAgentSilence;
}

void NodeLink::close_for_silence() {
  close(fmt::format("its host responds, but it sent nothing for {} s", kAgentSilence.count()));
}

void NodeLink::pause() { send({{"say", "beat"}, {"paused", true}}); }

}  // namespace gradring::train
