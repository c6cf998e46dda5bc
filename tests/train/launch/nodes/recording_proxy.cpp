// SPDX-License-Identifier: Apache-2.0
#include "tests/train/launch/nodes/recording_proxy.h"

#include <poll.h>
#include <sys/socket.h>

#include <sstream>

#include "comm/sockets/socket_address.h"
#include "tests/support/json.h"

namespace gradring::tests {
namespace {

using comm::tcp::SocketAddress;

constexpr int kTickMs = 20;  // interval of checks for a stop request

bool wait_for(const UniqueFd& socket, short what) {
  pollfd ready = {socket.get(), what, 0};
  return ::poll(&ready, 1, kTickMs) > 0;
}

bool send_all(const UniqueFd& socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    if (count < 0 && errno != EAGAIN) return false;
    if (count < 0) wait_for(socket, POLLOUT);
  }
  return true;
}

}  // namespace

RecordingProxy::RecordingProxy(int target)
    : target_(target),
      listener_(comm::tcp::listen_at({"127.0.0.1", 0}, 8)),
      port_(SocketAddress::of(listener_).port()),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void RecordingProxy::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!wait_for(listener_, POLLIN)) continue;
    const UniqueFd client = comm::tcp::accept_one(listener_);
    const UniqueFd server = comm::tcp::begin_connect({"127.0.0.1", static_cast<std::uint16_t>(target_)});
    if (client && wait_for(server, POLLOUT)) forward(stop, client, server);
  }
}

void RecordingProxy::forward(const std::stop_token& stop, const UniqueFd& one, const UniqueFd& other) {
  const UniqueFd* ends[] = {&one, &other};
  while (!stop.stop_requested()) {
    pollfd sources[] = {{one.get(), POLLIN, 0}, {other.get(), POLLIN, 0}};
    ::poll(sources, 2, kTickMs);
    for (int from = 0; from < 2; ++from) {
      if (sources[from].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = ::recv(ends[from]->get(), buffer, sizeof buffer, 0);
      if (count < 0 && errno == EAGAIN) continue;
      if (count <= 0) return;
      const std::string bytes(buffer, static_cast<std::size_t>(count));
      {
        const std::lock_guard lock(mutex_);
        recorded_[from] += bytes;
      }
      if (!send_all(*ends[1 - from], bytes)) return;
    }
  }
}

std::string RecordingProxy::bytes() const {
  const std::lock_guard lock(mutex_);
  return recorded_[0] + "\n" + recorded_[1];
}

std::vector<nlohmann::json> RecordingProxy::messages() const {
  std::vector<nlohmann::json> messages;
  std::istringstream lines(bytes());
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find("{\"");  // after the binary handshake
    auto message = tests::try_parse_json(line.substr(begin == std::string::npos ? line.size() : begin));
    if (message.is_object()) messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace gradring::tests
