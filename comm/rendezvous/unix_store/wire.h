// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/rendezvous/store.h"

namespace gradring::comm::wire {

/// What travels between a socket store's client and its server: one request and one answer per connection, each a frame
/// of a 32-bit length and as many bytes. Both ends are the same program on the same host, so numbers stay in its byte
/// order.

enum class Verb : std::uint8_t { set = 's', get = 'g', wait = 'w', add = 'a' };
enum class Status : std::uint8_t { ok = 'k', unset = 'u', refused = 'r' };

struct Request {
  Verb verb = Verb::get;
  std::string key;
  std::string value;  ///< of set; the increment of add, in decimal
};

struct Answer {
  Status status = Status::ok;
  std::string value;  ///< or why the request was refused
};

/// The longest frame that either end may send, without its length.
inline constexpr std::size_t kMaxFrameBytes = 2 + Store::kMaxKeyBytes + Store::kMaxValueBytes;
inline constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

std::string encode(const Request& request);
std::string encode(const Answer& answer);

/// What the bytes that have come so far amount to.
struct Frame {
  enum class State : std::uint8_t { partial, whole, junk };
  State state = State::partial;
  std::string_view body;  ///< of a whole one; points into `bytes`
};
/// junk: the length is more than a frame may have, or more bytes came than it says. Allocates nothing.
Frame parse_frame(std::string_view bytes);

/// Empty if the body is not one.
std::optional<Request> parse_request(std::string_view body);
std::optional<Answer> parse_answer(std::string_view body);

}  // namespace gradring::comm::wire
