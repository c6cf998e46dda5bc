// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/transport/membership.h"
#include "comm/transport/message.h"

namespace gradring::comm::tcp {

/// What a rank says on a connection.
enum class FrameKind : std::uint8_t {
  data,        ///< the payload that follows is a move's slice
  allocation,  ///< it has come to allocation number `segment`, of `elements` bytes
  waiting,     ///< it has been waiting for rank `subject` for a while; nobody: it goes on
  farewell,    ///< its last words: why it goes (`reason`), and whom it blames (`subject`)
};

/// The head of all that travels between two ranks after their handshake, of a fixed length, little-endian. Only data has
/// a payload, `elements` elements of `dtype`.
struct Frame {
  static constexpr std::uint32_t kMagic = 0x31465247;  // "GRF1"

  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::data;
  kernels::DType dtype = kernels::DType::u8;
  std::uint16_t zero = 0;
  Membership reason = Membership::member;
  std::int32_t subject = -1;
  std::uint64_t sequence = 0;  ///< among all frames of this connection in this direction, from 1
  std::array<char, 16> operation{};
  std::uint64_t collective = 0;
  std::uint64_t step = 0;
  std::uint64_t segment = 0;
  std::uint64_t range_offset = 0;
  std::uint64_t range_elements = 0;
  std::uint64_t offset = 0;
  std::uint64_t elements = 0;

  std::size_t payload_bytes() const { return kind == FrameKind::data ? elements * size_of(dtype) : 0; }
};
static_assert(sizeof(Frame) == 96 && std::has_unique_object_representations_v<Frame>, "no padding may travel");

/// Whether bytes that came from a peer can be a frame, the one that should come next in a world of that size.
bool is_valid(const Frame& frame, std::uint64_t sequence, int world_size);

Frame data_frame(const MessageHeader& message);
/// The inverse.
MessageHeader message_of(const Frame& frame);

}  // namespace gradring::comm::tcp
