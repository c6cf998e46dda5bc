// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/transport/transport.h"

namespace gradring::comm {

/// A sender's description of a message. The receiver compares it with what it expects, and so detects a desync before
/// it reads the data.
struct MessageHeader {
  std::array<char, 16> operation{};  ///< truncated, ends in 0
  std::uint64_t collective = 0;
  std::uint64_t step = 0;
  std::uint64_t segment = 0;       ///< number of the allocation, from 1; 0 without segment
  std::uint64_t range_offset = 0;  ///< of the collective's range, in elements
  std::uint64_t range_elements = 0;
  std::uint64_t offset = 0;  ///< of this message's slice in the segment, in elements
  std::uint64_t elements = 0;
  std::int32_t root = kNoRoot;
  Algorithm algorithm = Algorithm::ring;
  kernels::DType dtype = kernels::DType::f32;
  bool exposed = false;  ///< whether the receiver may also write the slice

  bool operator==(const MessageHeader&) const = default;
};

/// The header of the message that `move` sends or receives.
MessageHeader header_of(const Step& step, const Move& move);

/// The error message of a Desync.
std::string describe_mismatch(int rank, const MessageHeader& expected, int peer, const MessageHeader& sent);

/// Validates a step; every transport calls it before it runs one.
///
/// Errors    InvalidArgument if the step exceeds its segment, names an invalid peer, has two messages to or from one
///           peer, has moves that overlap, sums a dtype without sum, or uses expose on a transport that does not reach
///           its peers' memory.
void check_step(const Step& step, const Transport& transport);

}  // namespace gradring::comm
