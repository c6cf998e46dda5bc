// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/transport/group_failure.h"
#include "comm/transport/message.h"

namespace gradring::comm::tcp {

/// The frames that ranks exchange after the handshake.
enum class FrameKind : std::uint8_t {
  data,        ///< a move's slice follows as payload
  allocation,  ///< the rank has reached allocation number `segment`, of `elements` bytes
  waiting,     ///< the rank has waited for rank `subject` for some time; -1: it continues
  goodbye,     ///< the rank leaves: why (`reason`) and which rank failed (`subject`)
};

/// The header of every frame: fixed length, little-endian. Only data frames have a payload, `elements` elements of
/// `dtype`.
struct Frame {
  static constexpr std::uint32_t kMagic = 0x31465247;  // "GRF1"

  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::data;
  kernels::DType dtype = kernels::DType::u8;
  std::uint16_t zero = 0;
  GroupState reason = GroupState::member;
  std::int32_t subject = -1;
  std::uint64_t sequence = 0;  ///< number of the frame in this direction of the connection, from 1
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
static_assert(sizeof(Frame) == 96 && std::has_unique_object_representations_v<Frame>, "padding would be sent");

/// Whether received bytes are a valid frame with the expected sequence number, in a world of that size.
bool is_valid(const Frame& frame, std::uint64_t sequence, int world_size);

Frame data_frame(const MessageHeader& message);
/// The inverse of data_frame.
MessageHeader message_of(const Frame& frame);

}  // namespace gradring::comm::tcp
