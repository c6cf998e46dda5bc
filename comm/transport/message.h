// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/transport/transport.h"

namespace gradring::comm {

/// What a sender says about a message, so that a receiver that is elsewhere notices at once instead of reading
/// nonsense.
struct MessageHeader {
  std::array<char, 16> operation{};  ///< cut off if longer, ends in 0
  std::uint64_t collective = 0;
  std::uint64_t step = 0;
  std::uint64_t segment = 0;       ///< number of the allocation, from 1; 0 for none
  std::uint64_t range_offset = 0;  ///< of the collective's range, in elements
  std::uint64_t range_elements = 0;
  std::uint64_t offset = 0;  ///< of this message's slice in the segment, in elements
  std::uint64_t elements = 0;
  kernels::DType dtype = kernels::DType::f32;
  bool lent = false;  ///< whether the slice may be written, too
};

/// The header of the message that `move` sends, or receives. `segment` is the number of the step's segment, 0 for none.
MessageHeader header_of(const Step& step, const Move& move, std::uint64_t segment);

/// Whether what one rank sent is what the other expects: the same step of the same collective on the same range.
bool belong_together(const MessageHeader& sent, const MessageHeader& expected);

/// The two sides of a Desync, in words.
std::string describe_mismatch(int rank, const MessageHeader& expected, int peer, const MessageHeader& sent);

}  // namespace gradring::comm
