// SPDX-License-Identifier: Apache-2.0
#include "comm/sockets/handshake.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <type_traits>

#include "kernels/base/error.h"

namespace gradring::comm::tcp {
namespace {

constexpr std::array<char, 8> kMagic = {'G', 'R', 'A', 'D', 'R', 'I', 'N', 'G'};
constexpr std::uint32_t kVersion = 3;

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");
static_assert(std::has_unique_object_representations_v<Hello>, "padding would leak memory");

Hello hello_of(const Identity& self) {
  return {.magic = kMagic,
          .version = kVersion,
          .rank = self.rank,
          .world_size = self.world_size,
          .zero = 0,
          .nonce = random_nonce(),
          .proof = {}};
}

std::span<const std::uint8_t> bytes_of(const Hello& hello) {
  return {reinterpret_cast<const std::uint8_t*>(&hello), sizeof hello};
}

}  // namespace

Nonce random_nonce() {
  Nonce nonce;
  const ssize_t drawn = ::getrandom(nonce.data(), nonce.size(), 0);  // not interrupted for up to 256 bytes
  check<DeviceError>(drawn == static_cast<ssize_t>(nonce.size()),
                     "cannot read random bytes from the kernel (getrandom)");
  return nonce;
}

bool equal_digests(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

RunToken RunToken::from_secret(std::string_view secret) {
  Digest digest;
  ::SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return RunToken(digest);
}

RunToken RunToken::parse(const std::string& text) {
  Nonce secret;
  bool valid = text.size() == 2 * secret.size();
  for (std::size_t i = 0; valid && i < secret.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, secret[i], 16);
    valid = error == std::errc() && end == digits + 2;
  }
  check<DeviceError>(valid,
                     "the token of the ranks is invalid: expected 64 hexadecimal digits; check TcpGroupOptions::token, "
                     "or give each run its own store");
  return RunToken(secret);
}

std::string RunToken::to_text() const {
  std::string text;
  for (const std::uint8_t byte : secret_) text += fmt::format("{:02x}", byte);
  return text;
}

Digest RunToken::sign(std::string_view text) const {
  Digest digest;
  unsigned length = 0;
  const bool done =
      ::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length) != nullptr;
  check<DeviceError>(done && length == digest.size(),
                     "OpenSSL cannot compute HMAC-SHA256: check the OpenSSL configuration");
  return digest;
}

Handshake::Handshake(UniqueFd socket, const Identity& self, bool dialled, int peer, Deadline deadline)
    : socket_(std::move(socket)),
      self_(&self),
      dialled_(dialled),
      peer_(peer),
      deadline_(deadline),
      mine_(hello_of(self)) {}

Handshake Handshake::dial(UniqueFd socket, const Identity& self, int peer, Deadline deadline) {
  Handshake handshake(std::move(socket), self, true, peer, deadline);
  handshake.mine_.proof = handshake.proof_of(handshake.mine_);
  handshake.send_and_await(bytes_of(handshake.mine_), Awaited::hello);
  return handshake;
}

Handshake Handshake::dial(const SocketAddress& address, const Identity& self, int peer, Deadline deadline) {
  int failure = 0;
  Handshake handshake = dial(begin_connect(address, &failure), self, peer, deadline);
  handshake.error_number_ = failure;
  if (failure != 0) handshake.finish(State::closed);
  return handshake;
}

Handshake Handshake::answer(UniqueFd socket, const Identity& self, Deadline deadline) {
  Handshake handshake(std::move(socket), self, false, -1, deadline);
  handshake.send_and_await({}, Awaited::hello);
  return handshake;
}

short Handshake::interest() const { return sent_ < out_bytes_ ? POLLOUT : POLLIN; }

Handshake::State Handshake::finish(State state) { return state_ = state; }

Handshake::State Handshake::advance() {
  while (state_ == State::going) {
    if (sent_ < out_bytes_) {
      if (!count_moved(::send(socket_.get(), out_.data() + sent_, out_bytes_ - sent_, MSG_NOSIGNAL), sent_)) break;
    } else if (received_ < in_bytes_) {
      if (!count_moved(::recv(socket_.get(), in_.data() + received_, in_bytes_ - received_, 0), received_)) break;
    } else {
      next_step();
    }
  }
  if (state_ == State::going && overdue()) return finish(State::refused);
  return state_;
}

Handshake::State Handshake::advance_among(const std::list<Handshake>& pending) {
  const bool knew_token = knows_token_;
  advance();
  const auto is_repeated_by = [this](const Handshake& other) {
    return &other != this && other.knows_token_ && other.theirs_.nonce == theirs_.nonce;
  };
  if (state_ == State::going && knows_token_ && !knew_token && std::ranges::any_of(pending, is_repeated_by))
    finish(State::refused);
  return state_;
}

bool Handshake::drop_oldest(std::list<Handshake>& pending) {
  const auto oldest = std::ranges::find_if(pending, &Handshake::unauthenticated);
  if (oldest == pending.end()) return false;
  pending.erase(oldest);
  return true;
}

void Handshake::next_step() {
  if (awaited_ == Awaited::nothing) {
    finish(last_);
  } else if (awaited_ == Awaited::hello) {
    const bool is_expected = take_hello();
    if (!is_expected && dialled_ && theirs_.rank == kStandInRank) {
      error_number_ = ECONNREFUSED;
      finish(State::closed);
    } else if (!is_expected)
      finish(State::refused);
    else if (dialled_)
      send_and_await(proof_of(true), Awaited::proof);
    else
      send_and_await(bytes_of(mine_), Awaited::proof);
  } else if (dialled_) {
    finish(take_proof() ? State::proven : State::refused);
  } else {
    last_ = take_proof() ? State::proven : State::refused;
    send_and_await(last_ == State::proven ? proof_of(false) : Digest{}, Awaited::nothing);
  }
}

/// Adds what a send or recv has moved to `total`. False if nothing can be moved now, or the connection has ended.
bool Handshake::count_moved(ssize_t count, std::size_t& total) {
  if (count > 0) total += static_cast<std::size_t>(count);
  if (count > 0 || (count < 0 && errno == EINTR)) return true;
  const bool connects = errno == ENOTCONN && sent_ < out_bytes_;  // nothing is received before the first send
  if (count < 0 && (errno == EAGAIN || connects)) return false;
  error_number_ = count < 0 ? errno : 0;
  finish(State::closed);
  return false;
}

bool Handshake::take_hello() {
  std::memcpy(&theirs_, in_.data(), sizeof(Hello));
  if (theirs_.magic != kMagic || theirs_.version != kVersion || theirs_.world_size != self_->world_size) return false;
  if (dialled_) return theirs_.rank == peer_;
  peer_ = theirs_.rank;
  knows_token_ = equal_digests(theirs_.proof, proof_of(theirs_));
  return peer_ > self_->rank && peer_ < self_->world_size;  // ranks connect to lower ranks
}

bool Handshake::take_proof() const {
  Digest proof;
  std::memcpy(proof.data(), in_.data(), sizeof proof);
  return equal_digests(proof, proof_of(!dialled_));
}

void Handshake::send_and_await(std::span<const std::uint8_t> message, Awaited answer) {
  std::ranges::copy(message, out_.begin());
  out_bytes_ = message.size();
  sent_ = 0;
  awaited_ = answer;
  in_bytes_ = answer == Awaited::hello ? sizeof(Hello) : answer == Awaited::proof ? sizeof(Digest) : 0;
  received_ = 0;
}

Digest Handshake::proof_of(Hello hello) const {
  hello.proof = {};
  return self_->token.sign("hello" + std::string(reinterpret_cast<const char*>(&hello), sizeof hello));
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
