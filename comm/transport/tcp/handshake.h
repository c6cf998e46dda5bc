// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/transport/tcp/run_token.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/unique_fd.h"

namespace gradring::comm::tcp {

/// Who a rank is, and what it knows that a stranger does not.
struct Identity {
  int rank = 0;
  int world_size = 1;
  RunToken token;
};

/// The first words on a connection, of a fixed length.
struct Hello {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::int32_t rank = 0;
  std::int32_t world_size = 0;
  std::uint32_t zero = 0;
  Nonce nonce{};
};
static_assert(sizeof(Hello) == 56);

/// How two ranks that have just connected prove to each other that they belong to one run:
///
///   dialler   -> listener   Hello
///   listener  -> dialler    Hello
///   dialler   -> listener   HMAC(token, "dialler", both Hellos)
///   listener  -> dialler    HMAC(token, "listener", both Hellos), or zeros if the dialler's was wrong
///
/// Who does not know the token gets no further: other users of this host, port scanners, ranks of another run. Nor do they
/// get anything that depends on the token, with which they could try out passwords: the dialler proves itself first. The
/// nonces are fresh, so what was overheard cannot be played back. It does not protect against somebody who can read or change
/// packets on their way: gradients travel in the clear, so hosts need a network of their own.
///
/// Until it is over nothing is kept of a peer but this object, and nothing is read that it does not ask for.
///
/// Threads   one thread at a time.
class Handshake {
 public:
  enum class State : std::uint8_t {
    going,
    proven,
    closed,   ///< the peer closed the connection, or it came to none
    refused,  ///< the peer is none of this run, or another rank than was expected
  };

  static Handshake dial(UniqueFd socket, const Identity& self, int peer, Deadline patience);
  static Handshake answer(UniqueFd socket, const Identity& self, Deadline patience);

  /// Goes on as far as it can without waiting; a peer that lets the patience run out is refused.
  State advance();
  /// Whether the patience has run out.
  bool overdue() const { return patience_.passed(); }
  /// What to poll the socket for.
  short interest() const;
  int fd() const { return socket_.get(); }
  bool dialled() const { return dialled_; }
  /// The rank at the other end; of an answered one only when it is proven.
  int peer() const { return peer_; }
  /// The reason of the system for `closed`, 0 if the peer just closed.
  int error_number() const { return error_number_; }
  UniqueFd release() { return std::move(socket_); }

 private:
  enum class Awaited : std::uint8_t { hello, proof, nothing };

  Handshake(UniqueFd socket, const Identity& self, bool dialled, int peer, Deadline patience);
  State finish(State state);
  bool send_out();
  bool receive_in();
  /// What follows when all is sent and what was awaited is here.
  void go_on();
  bool take_hello();
  bool take_proof() const;
  void say(std::span<const std::uint8_t> words, Awaited answer);
  Digest proof_of(bool dialler) const;

  UniqueFd socket_;
  const Identity* self_;
  bool dialled_;
  int peer_;
  Deadline patience_;
  State state_ = State::going;
  int error_number_ = 0;
  Hello mine_;
  Hello theirs_;
  Awaited awaited_ = Awaited::hello;
  State last_ = State::proven;  // what it comes to when nothing is awaited
  std::array<std::uint8_t, sizeof(Hello)> out_;
  std::size_t out_bytes_ = 0;
  std::size_t sent_ = 0;
  std::array<std::uint8_t, sizeof(Hello)> in_;
  std::size_t in_bytes_ = 0;  // asked for
  std::size_t received_ = 0;
};

}  // namespace gradring::comm::tcp
