// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/unix_store/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "comm/rendezvous/entry.h"
#include "comm/rendezvous/unix_store/address.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {
namespace {

constexpr int kBacklog = 1024;
constexpr std::size_t kMaxConnections = 4096;
constexpr std::size_t kMaxEntries = 100'000;
constexpr std::chrono::seconds kPatience(5);  // with a client that does not finish its request or take its answer
constexpr int kTickMilliseconds = 1000;       // how often that is looked at

[[noreturn]] void throw_failed(const std::string& what) {
  throw DeviceError(fmt::format("the store's server cannot {}: {}", what, last_error()));
}

/// A socket that listens at `path`. It appears there only when it listens, so that no client is refused by chance.
UniqueFd listen_at(const std::filesystem::path& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw_failed("make a socket");
  const std::filesystem::path draft = path.native() + "-draft";
  const sockaddr_un address = unix_address(draft);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0 || ::rename(draft.c_str(), path.c_str()) != 0)
    throw_failed("listen at " + path.string());
  return socket;
}

bool is_of_this_user(const UniqueFd& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::getuid();
}

}  // namespace

UnixStoreServer::UnixStoreServer(const std::filesystem::path& parent)
    : directory_(parent), path_(directory_.path() / "store") {
  listener_ = listen_at(path_);
  stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) throw_failed("make an eventfd");
  thread_ = std::thread([this] { serve(); });
}

UnixStoreServer::~UnixStoreServer() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void UnixStoreServer::serve() {
  while (wait_for_events()) {
    accept_all();
    for (Connection& connection : connections_) {
      if (connection.outgoing.empty()) read(connection);
      if (!connection.outgoing.empty()) write(connection);
      if (connection.awaited.empty() && connection.give_up.passed()) connection.over = true;
    }
    connections_.remove_if([](const Connection& connection) { return connection.over; });
  }
}

/// False when it is time to stop.
bool UnixStoreServer::wait_for_events() {
  std::vector<pollfd> events = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  // Who stands at the door would end the wait at once, again and again: look after the door at the next tick.
  if (connections_.size() < kMaxConnections && !out_of_descriptors_)
    events.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  for (const Connection& connection : connections_) {
    const short interest = connection.outgoing.empty() ? POLLIN : POLLOUT;
    events.push_back({.fd = connection.fd.get(), .events = interest, .revents = 0});
  }
  ::poll(events.data(), events.size(), kTickMilliseconds);
  return (events.front().revents & POLLIN) == 0;
}

void UnixStoreServer::accept_all() {
  while (connections_.size() < kMaxConnections) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    out_of_descriptors_ = !socket && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
    if (!socket) return;
    if (is_of_this_user(socket))
      connections_.push_back({.fd = std::move(socket), .give_up = Deadline::after(kPatience)});
  }
}

void UnixStoreServer::read(Connection& connection) {
  char buffer[4096];
  const ssize_t count = ::recv(connection.fd.get(), buffer, sizeof buffer, 0);
  if (count < 0) {
    connection.over = errno != EAGAIN && errno != EINTR;
    return;
  }
  // One request is all that a client may send; who sends on while it waits is as lost as who has hung up.
  if (count == 0 || !connection.awaited.empty()) {
    connection.over = true;
    return;
  }
  connection.incoming.append(buffer, static_cast<std::size_t>(count));
  const wire::Frame frame = wire::parse_frame(connection.incoming);
  if (frame.state == wire::Frame::State::partial) return;
  const auto request = frame.state == wire::Frame::State::whole ? wire::parse_request(frame.body) : std::nullopt;
  if (!request) {
    connection.over = true;
    return;
  }
  try {
    act(connection, *request);
  } catch (const InvalidArgument& error) {
    answer(connection, {wire::Status::refused, error.what()});
  }
}

void UnixStoreServer::act(Connection& connection, const wire::Request& request) {
  check_entry(request.key, request.value);
  const auto found = values_.find(request.key);
  const bool is_set = found != values_.end();
  switch (request.verb) {
    case wire::Verb::set: set(request.key, request.value); return answer(connection, {wire::Status::ok, ""});
    case wire::Verb::add: {
      const std::int64_t increment = sum_of("increment", request.value, 0);
      set(request.key, std::to_string(sum_of(request.key, is_set ? found->second : "0", increment)));
      return answer(connection, {wire::Status::ok, values_[request.key]});
    }
    case wire::Verb::wait:
      if (is_set) return answer(connection, {wire::Status::ok, found->second});
      connection.awaited = request.key;
      return;
    case wire::Verb::get:
      return answer(connection,
                    is_set ? wire::Answer{wire::Status::ok, found->second} : wire::Answer{wire::Status::unset, ""});
  }
}

void UnixStoreServer::set(const std::string& key, const std::string& value) {
  check(values_.size() < kMaxEntries || values_.contains(key), "the store is full");
  values_[key] = value;
  for (Connection& waiting : connections_)
    if (waiting.awaited == key) answer(waiting, {wire::Status::ok, value});
}

void UnixStoreServer::answer(Connection& connection, const wire::Answer& answer) {
  connection.awaited.clear();
  connection.give_up = Deadline::after(kPatience);
  connection.outgoing = wire::encode(answer);
}

void UnixStoreServer::write(Connection& connection) {
  const ssize_t count =
      ::send(connection.fd.get(), connection.outgoing.data(), connection.outgoing.size(), MSG_NOSIGNAL);
  if (count < 0) {
    connection.over = errno != EAGAIN && errno != EINTR;
    return;
  }
  connection.outgoing.erase(0, static_cast<std::size_t>(count));
  connection.over = connection.outgoing.empty();
}

}  // namespace gradring::comm
