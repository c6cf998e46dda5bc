// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <string_view>

#include "comm/sockets/socket_address.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"

namespace gradring::comm::tcp {

using Digest = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;

/// Cryptographically secure random bytes.
///
/// Errors    DeviceError if the kernel provides none.
Nonce random_nonce();

/// Compares two digests in constant time.
bool equal_digests(const Digest& a, const Digest& b);

/// The shared secret of the ranks of one run. It is never sent over the network.
class RunToken {
 public:
  static RunToken draw() { return RunToken(random_nonce()); }
  /// The SHA-256 of a secret of any length; as hard to guess as the secret.
  static RunToken from_secret(std::string_view secret);
  /// Errors    DeviceError if the text is not a result of to_text.
  static RunToken parse(const std::string& text);

  /// 64 hexadecimal digits.
  std::string to_text() const;
  /// HMAC-SHA256 of the text with this token as key (RFC 2104).
  Digest sign(std::string_view text) const;
  /// A token for a label, sign(label): it reveals neither this token nor those of other labels.
  RunToken derive(std::string_view label) const { return RunToken(sign(label)); }

 private:
  explicit RunToken(const std::array<std::uint8_t, 32>& secret) : secret_(secret) {}

  Nonce secret_;
};

/// The rank of a process that listens in place of rank 0, which is not there yet. Who dials rank 0 tries again.
constexpr int kStandInRank = -1;

/// A rank and the secret that proves its identity.
struct Identity {
  int rank = 0;
  int world_size = 1;
  RunToken token;
};

/// The first message on a connection, of fixed length.
struct Hello {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::uint32_t zero = 0;
  Nonce nonce{};
  Digest proof{};  ///< from the dialler HMAC(token, "hello", this Hello with zeros here); from the listener zeros
};
static_assert(sizeof(Hello) == 88);

/// Mutual authentication of two ranks after a connect. The dialler is the rank that connected:
///
///   dialler   -> listener   Hello
///   listener  -> dialler    Hello
///   dialler   -> listener   HMAC(token, "dialler", both Hellos)
///   listener  -> dialler    HMAC(token, "listener", both Hellos), or zeros if the dialler's was wrong
///
/// A program without the token is refused: other users of this host, port scanners, ranks of another run. It receives
/// nothing that depends on the token and would allow an offline guess, because the dialler proves itself first. Fresh
/// nonces prevent replays. Only the proof in a Hello can be replayed; it merely protects one pending connection from
/// being dropped (advance_among). The handshake does not protect against an attacker who reads or changes packets:
/// traffic is not encrypted, so hosts need a private network.
///
/// Before it completes, a peer costs no memory beyond this object, and no more is read than the protocol expects.
///
/// Threads   one thread at a time.
class Handshake {
 public:
  enum class State : std::uint8_t {
    going,
    proven,
    closed,   ///< the connection was closed or could not be made
    refused,  ///< the peer is not a rank of this run, or not the expected rank
  };

  /// Errors    begin_connect's.
  static Handshake dial(const SocketAddress& address, const Identity& self, int peer, Deadline deadline);
  /// With a socket that is connected, or connects.
  static Handshake dial(UniqueFd socket, const Identity& self, int peer, Deadline deadline);
  static Handshake answer(UniqueFd socket, const Identity& self, Deadline deadline);

  /// Advances as far as possible without waiting. Refuses a peer that exceeds the deadline.
  State advance();
  /// The same for one of `pending`. Refuses a repeated Hello with proof, so that a recorded one protects at most one
  /// pending connection.
  State advance_among(const std::list<Handshake>& pending);
  State state() const { return state_; }
  bool overdue() const { return deadline_.passed(); }
  /// The poll events to wait for.
  short interest() const;
  int fd() const { return socket_.get(); }
  bool dialled() const { return dialled_; }
  /// Whether the peer connected and has not proved that it knows the token: it may be dropped in a connection flood.
  bool unauthenticated() const { return !dialled_ && !knows_token_; }
  /// Drops the oldest unauthenticated one. False if all are authenticated.
  static bool drop_oldest(std::list<Handshake>& pending);
  /// The peer's rank; for accepted connections valid once proven.
  int peer() const { return peer_; }
  /// errno for `closed`; 0 if the peer closed the connection.
  int error_number() const { return error_number_; }
  UniqueFd release() { return std::move(socket_); }

 private:
  enum class Awaited : std::uint8_t { hello, proof, nothing };

  Handshake(UniqueFd socket, const Identity& self, bool dialled, int peer, Deadline deadline);
  State finish(State state);
  bool count_moved(ssize_t count, std::size_t& total);
  /// The next protocol step, after all is sent and the awaited message is complete.
  void next_step();
  bool take_hello();
  bool take_proof() const;
  void send_and_await(std::span<const std::uint8_t> message, Awaited answer);
  Digest proof_of(bool dialler) const;
  Digest proof_of(Hello hello) const;

  UniqueFd socket_;
  const Identity* self_;
  bool dialled_;
  int peer_;
  bool knows_token_ = false;
  Deadline deadline_;
  State state_ = State::going;
  int error_number_ = 0;
  Hello mine_;
  Hello theirs_;
  Awaited awaited_ = Awaited::hello;
  State last_ = State::proven;  // the final state, once nothing is awaited
  std::array<std::uint8_t, sizeof(Hello)> out_;
  std::size_t out_bytes_ = 0;
  std::size_t sent_ = 0;
  std::array<std::uint8_t, sizeof(Hello)> in_;
  std::size_t in_bytes_ = 0;  // expected
  std::size_t received_ = 0;
};

}  // namespace gradring::comm::tcp
