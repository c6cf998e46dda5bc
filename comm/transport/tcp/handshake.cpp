// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <type_traits>

namespace gradring::comm::tcp {
namespace {

constexpr std::array<char, 8> kMagic = {'G', 'R', 'A', 'D', 'R', 'I', 'N', 'G'};
constexpr std::uint32_t kVersion = 1;

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");
static_assert(std::has_unique_object_representations_v<Hello>, "no padding may leak what was there before");

Hello hello_of(const Identity& self) {
  return {.magic = kMagic,
          .version = kVersion,
          .rank = self.rank,
          .world_size = self.world_size,
          .zero = 0,
          .nonce = random_nonce()};
}

}  // namespace

Handshake::Handshake(UniqueFd socket, const Identity& self, bool dialled, int peer, Deadline patience)
    : socket_(std::move(socket)),
      self_(&self),
      dialled_(dialled),
      peer_(peer),
      patience_(patience),
      mine_(hello_of(self)) {}

Handshake Handshake::dial(UniqueFd socket, const Identity& self, int peer, Deadline patience) {
  Handshake handshake(std::move(socket), self, true, peer, patience);
  std::memcpy(handshake.out_.data(), &handshake.mine_, sizeof(Hello));
  handshake.out_bytes_ = sizeof(Hello);
  handshake.in_bytes_ = sizeof(Hello) + sizeof(Digest);
  return handshake;
}

Handshake Handshake::answer(UniqueFd socket, const Identity& self, Deadline patience) {
  Handshake handshake(std::move(socket), self, false, -1, patience);
  handshake.in_bytes_ = sizeof(Hello);
  return handshake;
}

short Handshake::interest() const { return sent_ < out_bytes_ ? POLLOUT : POLLIN; }

Handshake::State Handshake::finish(State state) { return state_ = state; }

Handshake::State Handshake::advance() {
  while (state_ == State::going) {
    if (sent_ < out_bytes_) {
      if (!send_out()) break;
      continue;
    }
    if (received_ == in_bytes_) return finish(State::proven);  // there is nothing left to say or to hear
    if (!receive_in()) break;
    if (received_ < in_bytes_) continue;
    if (!heard_hello_) {
      if (!take_hello() || (dialled_ && !take_proof(sizeof(Hello)))) return finish(State::refused);
      put_proof();
    } else if (!take_proof(0)) {
      return finish(State::refused);
    }
  }
  if (state_ == State::going && overdue()) return finish(State::refused);
  return state_;
}

/// False if the system takes no more, or the connection is over.
bool Handshake::send_out() {
  const ssize_t count = ::send(socket_.get(), out_.data() + sent_, out_bytes_ - sent_, MSG_NOSIGNAL);
  if (count >= 0) {
    sent_ += static_cast<std::size_t>(count);
    return true;
  }
  if (errno == EINTR) return true;
  if (errno == EAGAIN || errno == ENOTCONN) return false;
  error_number_ = errno;
  finish(State::closed);
  return false;
}

/// False if nothing is there, or the connection is over.
bool Handshake::receive_in() {
  const ssize_t count = ::recv(socket_.get(), in_.data() + received_, in_bytes_ - received_, 0);
  if (count > 0) {
    received_ += static_cast<std::size_t>(count);
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  error_number_ = count < 0 ? errno : 0;
  finish(State::closed);
  return false;
}

bool Handshake::take_hello() {
  std::memcpy(&theirs_, in_.data(), sizeof(Hello));
  heard_hello_ = true;
  if (theirs_.magic != kMagic || theirs_.version != kVersion || theirs_.world_size != self_->world_size) return false;
  if (dialled_) return theirs_.rank == peer_;
  peer_ = theirs_.rank;
  return peer_ > self_->rank && peer_ < self_->world_size;  // a rank dials those below it
}

bool Handshake::take_proof(std::size_t at) {
  Digest proof;
  std::memcpy(proof.data(), in_.data() + at, sizeof proof);
  return equal_digests(proof, proof_of(!dialled_));
}

/// What is said next: the dialler's proof, after which it has heard all; or the listener's Hello and proof, after which
/// it wants the dialler's.
void Handshake::put_proof() {
  const Digest proof = proof_of(dialled_);
  const std::size_t hello_bytes = dialled_ ? 0 : sizeof(Hello);
  if (!dialled_) std::memcpy(out_.data(), &mine_, hello_bytes);
  std::memcpy(out_.data() + hello_bytes, proof.data(), sizeof proof);
  out_bytes_ = hello_bytes + sizeof proof;
  sent_ = 0;
  in_bytes_ = dialled_ ? 0 : sizeof proof;
  received_ = 0;
}

Digest Handshake::proof_of(bool dialler) const {
  const Hello& first = dialled_ ? mine_ : theirs_;
  const Hello& second = dialled_ ? theirs_ : mine_;
  std::string text = dialler ? "dialler" : "listener";
  text.append(reinterpret_cast<const char*>(&first), sizeof first);
  text.append(reinterpret_cast<const char*>(&second), sizeof second);
  return self_->token.sign(text);
}

}  // namespace gradring::comm::tcp
