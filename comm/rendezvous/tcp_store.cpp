// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/tcp_store.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "comm/rendezvous/tcp_store_server.h"
#include "comm/sockets/dial.h"
#include "comm/transport/error.h"

namespace gradring::comm {
namespace {

constexpr int kServer = 0;  // the rank that serves
constexpr std::chrono::milliseconds kRetryInterval(200);
/// A rank 0 that was suspended, or whose host was down, is dialled again.
constexpr std::chrono::seconds kDialTimeout(5);
/// For a listener that does not know the token: an earlier attempt may not have ended yet.
constexpr std::chrono::seconds kRejectionDelay(5);
/// The server ends a wait itself: the client waits longer for that answer.
constexpr std::chrono::seconds kAnswerDelay(5);

constexpr tcp::DialAdvice kAdvice = {
    .closed = "it closed the connection; expected rank 0 of this run, with the same GRADRING_TOKEN and WORLD_SIZE",
    .rejected =
        "rank 0 of another run, or of one with another GRADRING_TOKEN, --run-dir or world size: give all ranks the "
        "same token, --run-dir and WORLD_SIZE, and each run a port of its own"};

constexpr const char* kSilent = "it does not answer, though the connection is open";

struct Transferred {
  bool done = false;
  bool late = false;  ///< the deadline has passed; otherwise the connection has ended
  int error = 0;      ///< errno, 0 if the peer closed
};

/// Sends or receives all bytes.
template <class Byte, class Move>
Transferred transfer(const UniqueFd& socket, Byte* bytes, std::size_t count, short event, const Move& move,
                     Deadline deadline) {
  for (std::size_t moved = 0; moved < count;) {
    const ssize_t result = move(socket.get(), bytes + moved, count - moved);
    if (result > 0) moved += static_cast<std::size_t>(result);
    if (result > 0 || (result < 0 && errno == EINTR)) continue;
    if (result == 0) return {};
    if (errno != EAGAIN) return {.error = errno};
    if (deadline.passed()) return {.late = true};
    pollfd ready = {.fd = socket.get(), .events = event, .revents = 0};
    ::poll(&ready, 1, poll_timeout(deadline));
  }
  return {.done = true};
}

Transferred send_all(const UniqueFd& socket, const std::string& bytes, Deadline deadline) {
  const auto move = [](int fd, const char* at, std::size_t count) { return ::send(fd, at, count, MSG_NOSIGNAL); };
  return transfer(socket, bytes.data(), bytes.size(), POLLOUT, move, deadline);
}

Transferred receive_all(const UniqueFd& socket, char* bytes, std::size_t count, Deadline deadline) {
  const auto move = [](int fd, char* at, std::size_t most) { return ::recv(fd, at, most, 0); };
  return transfer(socket, bytes, count, POLLIN, move, deadline);
}

/// Dials until rank 0 answers.
tcp::DialledPeer reach_server(const TcpStoreSpec& spec) {
  const Deadline deadline = Deadline::after(spec.timeout);
  std::optional<Deadline> rejected_until;
  std::optional<InvalidArgument> rejection;
  std::string tried;
  for (;;) {
    tcp::Reasons reasons;
    try {
      const Deadline answer_by =
          Deadline::after(std::min<std::chrono::nanoseconds>(deadline.remaining(), kDialTimeout));
      auto server = tcp::dial_first(spec.addresses(), spec.self, kServer, kAdvice, answer_by, reasons);
      if (server) return std::move(*server);
    } catch (const InvalidArgument& error) {
      if (!rejected_until) rejected_until = Deadline::after(kRejectionDelay);
      if (rejected_until->passed()) throw;
      rejection = error;
    } catch (const DeviceError& error) {  // such as a name that cannot be resolved yet
      reasons.add(error.what());
    }
    if (tried.empty() || !deadline.passed()) tried = reasons.text();  // the deadline cuts the last try short
    if (deadline.passed() && rejection) throw *rejection;
    if (deadline.passed())
      throw Timeout({.rank = spec.self.rank, .peer = kServer, .operation = "join"},
                    fmt::format("rank {} of {} waited {:.1f} s for rank 0 at {}: {}; start rank 0 on that host, check "
                                "that the hosts reach each other at this port, or raise the timeout",
                                spec.self.rank, spec.self.world_size,
                                std::chrono::duration<double>(spec.timeout).count(), spec.where, tried));
    spec.pause(deadline.nap(kRetryInterval));
  }
}

}  // namespace

TcpStore::TcpStore(const TcpStoreSpec& spec) : TcpStore(spec, reach_server(spec)) {}

TcpStore::TcpStore(const TcpStoreSpec& spec, tcp::DialledPeer server)
    : spec_(spec), server_(server.address), own_address_(tcp::SocketAddress::of(server.socket).host()) {
  idle_.push_back(std::move(server.socket));
}

void TcpStore::set(const std::string& key, const std::string& value) {
  check_entry(key, value);
  request(StoreOperation::set, key, value, 0, Deadline::after(spec_.timeout));
}

std::string TcpStore::wait(const std::string& key, Deadline deadline) {
  check_key(key);
  const auto began = Deadline::Clock::now();
  for (;;) {
    if (auto value = wait_once(key, deadline.remaining(), kAnswerDelay)) return *value;
    if (deadline.passed()) throw_missing(key, began);
  }
}

std::string TcpStore::get(const std::string& key) {
  check_key(key);
  if (auto value = wait_once(key, std::chrono::nanoseconds(0), spec_.timeout)) return *value;
  throw_unset(key);
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t increment) {
  check_key(key);
  return request(StoreOperation::add, key, "", increment, Deadline::after(spec_.timeout)).number;
}

void TcpStore::remove(const std::string& key) {
  check_key(key);
  request(StoreOperation::remove, key, "", 0, Deadline::after(spec_.timeout));
}

std::optional<std::string> TcpStore::wait_once(const std::string& key, std::chrono::nanoseconds time,
                                               std::chrono::nanoseconds delay) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time);
  Answer answer = request(StoreOperation::wait, key, "", milliseconds.count(), Deadline::after(milliseconds + delay));
  if (answer.status == StoreStatus::unset) return std::nullopt;
  return std::move(answer.value);
}

TcpStore::Answer TcpStore::request(StoreOperation operation, const std::string& key, const std::string& value,
                                   std::int64_t number, Deadline deadline) {
  const StoreRequest header{.operation = operation,
                            .key_bytes = static_cast<std::uint32_t>(key.size()),
                            .value_bytes = static_cast<std::uint32_t>(value.size()),
                            .number = number};
  UniqueFd connection = take_connection(deadline);
  Answer answer =
      exchange(connection, std::string(reinterpret_cast<const char*>(&header), sizeof header) + key + value, deadline);
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  freed_.notify_one();
  if (answer.status == StoreStatus::invalid) throw InvalidArgument(answer.value);
  if (answer.status == StoreStatus::full)
    throw DeviceError(fmt::format("the store that rank {} serves at {} is full", kServer, where()));
  return answer;
}

TcpStore::Answer TcpStore::exchange(const UniqueFd& connection, const std::string& request, Deadline deadline) {
  StoreAnswer header;
  Answer answer;
  Transferred moved = send_all(connection, request, deadline);
  if (moved.done) moved = receive_all(connection, reinterpret_cast<char*>(&header), sizeof header, deadline);
  if (moved.done && !is_valid(header)) throw_lost("it sent an invalid answer; run the same version on all ranks");
  if (moved.done) {
    answer = {.status = header.status, .value = std::string(header.value_bytes, '\0'), .number = header.number};
    moved = receive_all(connection, answer.value.data(), answer.value.size(), deadline);
  }
  if (moved.done) return answer;
  if (!moved.late) throw_lost(moved.error != 0 ? tcp::reason_of(moved.error) : "it closed the connection");
  throw_lost(kSilent);
}

UniqueFd TcpStore::take_connection(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto is_possible = [&] {
    return !reason_.empty() || !idle_.empty() || open_ < TcpStoreServer::kMaxConnections;
  };
  const bool possible = wait_until(freed_, lock, deadline, is_possible);
  if (possible && reason_.empty() && !idle_.empty()) {
    UniqueFd connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }
  const std::string reason = possible ? reason_ : kSilent;
  if (reason.empty()) ++open_;
  lock.unlock();
  if (!reason.empty()) throw_lost(reason);
  tcp::Reasons reasons;
  auto server = tcp::dial_first({server_}, spec_.self, kServer, kAdvice, deadline, reasons);
  if (!server) throw_lost(reasons.text());
  return std::move(server->socket);
}

/// The first reason stays.
void TcpStore::throw_lost(const std::string& reason) {
  std::string first;
  {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
    first = reason_;
  }
  freed_.notify_all();
  const OpContext context{.rank = spec_.self.rank, .peer = kServer, .operation = "store"};
  const std::string message =
      fmt::format("rank {} lost the store that rank 0 serves at {}: {}; look at the log of rank 0", spec_.self.rank,
                  where(), first);
  if (first == kSilent) throw Timeout(context, message);
  throw PeerLost(context, message);
}

}  // namespace gradring::comm
