// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/unix_store/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include "comm/error.h"
#include "comm/rendezvous/entry.h"
#include "comm/rendezvous/unix_store/address.h"
#include "kernels/runtime/poll_timeout.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::comm {
namespace {

constexpr std::chrono::milliseconds kNap(5);

/// A connection to the server at one path, for one request.
class Call {
 public:
  Call(const std::filesystem::path& path, Deadline deadline) : path_(path), deadline_(deadline) { connect(); }

  /// False if the deadline passed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!ready(POLLOUT)) return false;
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) throw_gone(last_error());
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Empty if the deadline passed.
  std::optional<wire::Answer> receive() {
    std::string bytes;
    for (;;) {
      if (!ready(POLLIN)) return std::nullopt;
      char buffer[4096];
      const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (count <= 0) throw_gone(count == 0 ? "it hung up" : last_error());
      bytes.append(buffer, static_cast<std::size_t>(count));
      const wire::Frame frame = wire::parse_frame(bytes);
      if (frame.state == wire::Frame::State::partial) continue;
      if (auto answer = wire::parse_answer(frame.body)) return answer;
      throw_gone("its answer is not one");
    }
  }

  bool connected() const { return connected_; }

 private:
  /// Tries until the server is there, or the deadline has passed.
  void connect() {
    const sockaddr_un address = unix_address(path_);
    for (;;) {
      socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      check<DeviceError>(bool(socket_), "cannot make a socket for the store: " + last_error());
      connected_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      if (connected_) return;
      // No socket there yet, or more clients at the door than it takes; anything else will not get better.
      if (errno != ENOENT && errno != EAGAIN && errno != EINTR) throw_gone(last_error());
      if (deadline_.passed()) return;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kNap, deadline_.remaining()));
    }
  }

  bool ready(short interest) const {
    pollfd event{.fd = socket_.get(), .events = interest, .revents = 0};
    return ::poll(&event, 1, poll_timeout(deadline_)) > 0 || !deadline_.passed();
  }

  [[noreturn]] void throw_gone(const std::string& why) const {
    throw CommError({.operation = "store"},
                    fmt::format("the store at {} is gone ({}): look at the log of the launcher or of "
                                "rank 0, which keeps it",
                                path_.string(), why));
  }

  const std::filesystem::path& path_;
  Deadline deadline_;
  UniqueFd socket_;
  bool connected_ = false;
};

}  // namespace

UnixStore::UnixStore(std::filesystem::path path, std::chrono::nanoseconds patience)
    : path_(std::move(path)), patience_(patience) {
  unix_address(path_);
}

wire::Answer UnixStore::ask(const wire::Request& request, Deadline deadline) const {
  const auto began = Deadline::Clock::now();
  Call call(path_, deadline);
  std::optional<wire::Answer> answer;
  if (call.connected() && call.send(wire::encode(request))) answer = call.receive();
  if (!answer && request.verb == wire::Verb::wait && call.connected()) throw_missing(request.key, began);
  if (!answer)
    throw Timeout(
        {.operation = "store"},
        fmt::format("the store at {} did not answer in time about the key '{}': is the launcher, or rank 0, running?",
                    path_.string(), request.key));
  if (answer->status == wire::Status::refused) throw InvalidArgument(answer->value);
  if (answer->status == wire::Status::unset) throw_unset(request.key);
  return *answer;
}

void UnixStore::set(const std::string& key, const std::string& value) {
  check_entry(key, value);
  ask({wire::Verb::set, key, value}, Deadline::after(patience_));
}

std::string UnixStore::wait(const std::string& key, Deadline deadline) {
  check_key(key);
  return ask({wire::Verb::wait, key, ""}, deadline).value;
}

std::string UnixStore::get(const std::string& key) {
  check_key(key);
  return ask({wire::Verb::get, key, ""}, Deadline::after(patience_)).value;
}

std::int64_t UnixStore::add(const std::string& key, std::int64_t increment) {
  check_key(key);
  return sum_of(key, ask({wire::Verb::add, key, std::to_string(increment)}, Deadline::after(patience_)).value, 0);
}

}  // namespace gradring::comm
