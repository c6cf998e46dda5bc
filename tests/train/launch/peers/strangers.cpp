// SPDX-License-Identifier: Apache-2.0
#include "tests/train/launch/peers/strangers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace gradring::tests {
namespace {

using comm::tcp::Digest;
using comm::tcp::Handshake;
using comm::tcp::Hello;

constexpr int kPatienceMs = 5000;

bool wait_for(int fd, short what) {
  pollfd ready = {fd, what, 0};
  return ::poll(&ready, 1, kPatienceMs) > 0;
}

/// Whether all of it could be sent.
bool say(const UniqueFd& socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<std::size_t>(count);
    if (count <= 0 && (errno != EAGAIN || !wait_for(socket.get(), POLLOUT))) return false;
  }
  return true;
}

/// What comes, until there is so much of it or the other side closes.
std::string hear(const UniqueFd& socket, std::size_t bytes) {
  std::string heard;
  while (heard.size() < bytes && wait_for(socket.get(), POLLIN)) {
    char buffer[256];
    const ssize_t count = ::recv(socket.get(), buffer, std::min(sizeof buffer, bytes - heard.size()), 0);
    if (count <= 0) break;
    heard.append(buffer, static_cast<std::size_t>(count));
  }
  return heard;
}

/// A length of 4 GB, as many protocols would have it, and what could follow.
std::string four_gigabytes() { return std::string(8, '\xff') + std::string(120, 'x'); }

}  // namespace

Strangers::Strangers(int port, const comm::tcp::Identity& member)
    : address_("127.0.0.1", static_cast<std::uint16_t>(port)), member_(member), other_(member) {
  other_.token = comm::tcp::RunToken::draw();
  overhear();
}

UniqueFd Strangers::connect() const {
  UniqueFd socket = comm::tcp::begin_connect(address_);
  wait_for(socket.get(), POLLOUT);
  return socket;
}

/// A member's whole handshake by way of this process, which keeps what it said.
void Strangers::overhear() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no socket pair");
  const UniqueFd wire(ends[1]);
  Handshake member = Handshake::dial(UniqueFd(ends[0]), member_, 0, Deadline::after(std::chrono::seconds(5)));
  const UniqueFd socket = connect();
  member.advance();
  hello_ = hear(wire, sizeof(Hello));
  say(socket, hello_);
  say(wire, hear(socket, sizeof(Hello)));
  member.advance();
  proof_ = hear(wire, sizeof(Digest));
  say(socket, proof_);
  say(wire, hear(socket, sizeof(Digest)));
  if (member.advance() != Handshake::State::proven) throw std::runtime_error("a member was not let in");
}

bool Strangers::send_and_go(const std::string& bytes) const {
  say(connect(), bytes);
  return true;
}

bool Strangers::stay(const std::string& bytes) {
  waiting_.push_back(connect());
  say(waiting_.back(), bytes);
  if (waiting_.size() > kMostSilent) waiting_.pop_front();
  return true;
}

/// One more byte from each that waits, of what a member would say.
void Strangers::drip() {
  for (const UniqueFd& socket : waiting_) ::send(socket.get(), hello_.data() + 8, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Strangers::try_token() const {
  Handshake handshake = Handshake::dial(connect(), other_, 0, Deadline::after(std::chrono::milliseconds(kPatienceMs)));
  auto state = handshake.advance();
  while (state == Handshake::State::going) {
    wait_for(handshake.fd(), handshake.interest());
    state = handshake.advance();
  }
  return state != Handshake::State::proven;
}

bool Strangers::play_back() const {
  const UniqueFd socket = connect();
  say(socket, hello_);
  if (hear(socket, sizeof(Hello)).size() < sizeof(Hello)) return true;
  say(socket, proof_);
  say(socket, "{\"say\": \"join\"}\n");
  const std::string answer = hear(socket, sizeof(Digest));
  return answer.find_first_not_of('\0') == std::string::npos && hear(socket, 1).empty() && ::send(socket.get(), "\n", 1, MSG_NOSIGNAL) <= 0;
}

bool Strangers::knock() {
  constexpr int kOftenDripped = 64;
  if (++knocked_ % kOftenDripped == 0) drip();
  switch (knocked_ % 7) {
    case 0: return send_and_go("GET / HTTP/1.1\r\n\r\n");
    case 1: return send_and_go(std::string(4096, '\xff'));
    case 2: return send_and_go(hello_ + four_gigabytes());
    case 3: return stay("");
    case 4: return stay(hello_.substr(0, 8));
    case 5: return try_token();
    default: return play_back();
  }
}

}  // namespace gradring::tests
