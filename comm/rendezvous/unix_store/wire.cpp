// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/unix_store/wire.h"

#include <cstring>

namespace gradring::comm::wire {
namespace {

std::string framed(const std::string& body) {
  const auto length = static_cast<std::uint32_t>(body.size());
  std::string frame(kLengthBytes, '\0');
  std::memcpy(frame.data(), &length, kLengthBytes);
  return frame + body;
}

bool is_verb(char byte) { return std::string_view("sgwa").find(byte) != std::string_view::npos; }
bool is_status(char byte) { return std::string_view("kur").find(byte) != std::string_view::npos; }

}  // namespace

// A request is its verb, the length of its key in one byte, the key, the value. An answer is its status, the value.
static_assert(Store::kMaxKeyBytes < 256);

std::string encode(const Request& request) {
  return framed(std::string{static_cast<char>(request.verb), static_cast<char>(request.key.size())} + request.key +
                request.value);
}

std::string encode(const Answer& answer) { return framed(static_cast<char>(answer.status) + answer.value); }

Frame parse_frame(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return {};
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  bytes.remove_prefix(kLengthBytes);
  if (length > kMaxFrameBytes || bytes.size() > length) return {.state = Frame::State::junk, .body = {}};
  if (bytes.size() < length) return {};
  return {.state = Frame::State::whole, .body = bytes};
}

std::optional<Request> parse_request(std::string_view body) {
  if (body.size() < 2 || !is_verb(body[0])) return std::nullopt;
  const auto key_bytes = static_cast<std::size_t>(static_cast<unsigned char>(body[1]));
  if (body.size() < 2 + key_bytes) return std::nullopt;
  return Request{static_cast<Verb>(body[0]), std::string(body.substr(2, key_bytes)),
                 std::string(body.substr(2 + key_bytes))};
}

std::optional<Answer> parse_answer(std::string_view body) {
  if (body.empty() || !is_status(body[0])) return std::nullopt;
  return Answer{static_cast<Status>(body[0]), std::string(body.substr(1))};
}

}  // namespace gradring::comm::wire
