// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/tcp_store_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>

#include "comm/sockets/socket_address.h"
#include "kernels/base/descriptor_limit.h"

namespace gradring::comm {
namespace {

constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24);
constexpr std::chrono::seconds kGoodbyeTime(1);
/// What rank 0 opens besides pending connections: a socket for each peer of the store and of two transports, and files.
constexpr std::size_t kSocketsOfAPeer = 3, kOtherFiles = 32;

UniqueFd make_event() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  check<DeviceError>(static_cast<bool>(event),
                     [&] { return "cannot create an eventfd for the store: " + tcp::reason_of(errno); });
  return event;
}

/// Errors    DeviceError if rank 0 may not open as many.
std::size_t descriptors_of_run(int world_size) {
  const std::size_t count = kOtherFiles + kSocketsOfAPeer * static_cast<std::size_t>(world_size);
  require_descriptors(count, fmt::format("rank 0 of a world of {}", world_size));
  return count;
}

/// Signals are for other threads.
std::thread thread_without_signals(std::function<void()> work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

/// A connection of a rank: it reads a request, perhaps waits, and sends the answer, in this order.
class TcpStoreServer::Client {
 public:
  explicit Client(tcp::Admitted admitted) : rank(admitted.rank), socket_(std::move(admitted.socket)) {}

  const int rank;

  int fd() const { return socket_.get(); }
  short interest() const { return answering() ? POLLOUT : waits_until ? POLLRDHUP : POLLIN; }
  bool answering() const { return sent_ < out_.size(); }
  void close() { socket_.reset(); }

  const StoreRequest& request() const { return request_; }
  std::string key() const { return in_.substr(sizeof request_, request_.key_bytes); }
  std::string value() const { return in_.substr(sizeof request_ + request_.key_bytes); }
  /// Set while the request is a wait for an entry that is missing.
  std::optional<Deadline> waits_until;

  /// Whether a request is complete. Closes the connection on an invalid one, or at its end.
  bool receive() {
    while (socket_) {
      const ssize_t count = ::recv(socket_.get(), in_.data() + received_, in_.size() - received_, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return false;
      if (count <= 0) break;
      received_ += static_cast<std::size_t>(count);
      if (received_ < in_.size()) continue;
      if (in_.size() > sizeof request_) return true;
      std::memcpy(&request_, in_.data(), sizeof request_);
      if (!is_valid(request_)) break;
      in_.resize(sizeof request_ + request_.key_bytes + request_.value_bytes);
    }
    close();
    return false;
  }

  void answer(StoreStatus status, const std::string& value = "", std::int64_t number = 0) {
    const StoreAnswer header{
        .status = status, .value_bytes = static_cast<std::uint32_t>(value.size()), .number = number};
    out_.assign(reinterpret_cast<const char*>(&header), sizeof header);
    out_ += value;
    sent_ = 0;
    waits_until.reset();
    in_ = std::string(sizeof request_, '\0');
    received_ = 0;
    send();
  }

  /// As far as the kernel takes it.
  void send() {
    while (answering()) {
      const ssize_t count = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0) return close();
      sent_ += static_cast<std::size_t>(count);
    }
  }

 private:
  UniqueFd socket_;
  StoreRequest request_;
  std::string in_ = std::string(sizeof request_, '\0');  // as large as what is expected
  std::size_t received_ = 0;
  std::string out_;
  std::size_t sent_ = 0;
};

TcpStoreServer::TcpStoreServer(int port, const tcp::Identity& self)
    : world_size_(self.world_size),
      wake_(make_event()),
      acceptor_("", port, self, self.world_size, descriptors_of_run(self.world_size)),
      where_(acceptor_.where()),
      has_connected_(static_cast<std::size_t>(self.world_size)),
      thread_(thread_without_signals([this] { serve(); })) {}

TcpStoreServer::~TcpStoreServer() {
  ends_ = true;
  wake();
  thread_.join();
}

void TcpStoreServer::set(const std::string& key, const std::string& value) {
  entries_.set(key, value);
  wake();
}

std::string TcpStoreServer::wait(const std::string& key, Deadline deadline) { return entries_.wait(key, deadline); }

std::string TcpStoreServer::get(const std::string& key) { return entries_.get(key); }

std::int64_t TcpStoreServer::add(const std::string& key, std::int64_t increment) {
  const std::int64_t sum = entries_.add(key, increment);
  wake();
  return sum;
}

void TcpStoreServer::remove(const std::string& key) { entries_.remove(key); }

/// The serving thread: clients may wait for what has changed.
void TcpStoreServer::wake() { ::eventfd_write(wake_.get(), 1); }

void TcpStoreServer::serve() try {
  for (;;) {
    std::vector<pollfd> sources = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    if (!closes_at_)
      for (const int fd : acceptor_.fds()) sources.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    const auto others = std::ssize(sources);
    for (const Client& client : clients_)
      sources.push_back({.fd = client.fd(), .events = client.interest(), .revents = 0});
    ::poll(sources.data(), sources.size(), patience());
    eventfd_t changes = 0;
    ::eventfd_read(wake_.get(), &changes);
    if (ends_ && !closes_at_) closes_at_ = Deadline::after(kGoodbyeTime);
    auto client = clients_.begin();
    for (auto source = sources.begin() + others; source != sources.end(); ++source, ++client)
      if (source->revents != 0) advance(*client);
    if (!closes_at_)
      for (tcp::Admitted& admitted : acceptor_.admit()) take_in(std::move(admitted));
    for (Client& waiting : clients_)
      if (waiting.waits_until) answer_waiting(waiting);
    clients_.remove_if([](const Client& one) { return one.fd() < 0; });
    if (closes_at_ && (clients_.empty() || closes_at_->passed())) break;
  }
  clients_.clear();
} catch (const std::exception&) {  // no memory, no random numbers: the other ranks see that their connections end
  clients_.clear();
}

int TcpStoreServer::patience() const {
  std::optional<Deadline> next = closes_at_ ? closes_at_ : acceptor_.next_poll();
  for (const Client& client : clients_)
    if (client.waits_until && (!next || client.waits_until->remaining() < next->remaining())) next = client.waits_until;
  return poll_timeout(next);
}

void TcpStoreServer::take_in(tcp::Admitted admitted) {
  const auto is_same = [&](const Client& client) { return client.fd() >= 0 && client.rank == admitted.rank; };
  if (std::ranges::count_if(clients_, is_same) >= kMaxConnections) return;
  publish_address(admitted);
  clients_.emplace_back(std::move(admitted));
}

void TcpStoreServer::publish_address(const tcp::Admitted& admitted) {
  const tcp::SocketAddress own = tcp::SocketAddress::of(admitted.socket);
  has_connected_[static_cast<std::size_t>(admitted.rank)] = true;
  const bool all_have = std::ranges::count(has_connected_, true) == world_size_ - 1;
  if (has_address_ || (own.is_loopback() && !all_have)) return;
  has_address_ = true;
  set(kAddressKey, own.host());
}

void TcpStoreServer::advance(Client& client) {
  if (client.answering()) return client.send();
  if (client.waits_until) return client.close();  // POLLRDHUP: it waits no longer
  if (client.receive()) execute(client);
}

void TcpStoreServer::execute(Client& client) try {
  const std::string key = client.key();
  switch (client.request().operation) {
    case StoreOperation::set: set(key, client.value()); return client.answer(StoreStatus::ok);
    case StoreOperation::add: return client.answer(StoreStatus::ok, "", add(key, client.request().number));
    case StoreOperation::remove: remove(key); return client.answer(StoreStatus::ok);
    case StoreOperation::wait:
      client.waits_until = Deadline::after(std::clamp<std::chrono::milliseconds>(
          std::chrono::milliseconds(client.request().number), std::chrono::milliseconds(0), kLongestWait));
      return answer_waiting(client);
  }
} catch (const InvalidArgument& error) {
  client.answer(StoreStatus::invalid, error.what());
} catch (const StoreFull&) {
  client.answer(StoreStatus::full);
}

void TcpStoreServer::answer_waiting(Client& client) {
  if (const auto value = entries_.find(client.key())) return client.answer(StoreStatus::ok, *value);
  if (client.waits_until->passed()) client.answer(StoreStatus::unset);
}

}  // namespace gradring::comm
