// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/frame.h"

namespace gradring::comm::tcp {

bool is_valid(const Frame& frame, std::uint64_t sequence, int world_size) {
  return frame.magic == Frame::kMagic && frame.sequence == sequence && frame.kind <= FrameKind::goodbye &&
         frame.dtype <= kernels::DType::u8 && frame.reason <= GroupState::desync && frame.subject >= -1 &&
         frame.subject < world_size && frame.operation.back() == '\0';
}

Frame data_frame(const MessageHeader& message) {
  Frame frame;
  frame.dtype = message.dtype;
  frame.operation = message.operation;
  frame.collective = message.collective;
  frame.step = message.step;
  frame.segment = message.segment;
  frame.range_offset = message.range_offset;
  frame.range_elements = message.range_elements;
  frame.offset = message.offset;
  frame.elements = message.elements;
  return frame;
}

MessageHeader message_of(const Frame& frame) {
  MessageHeader message;
  message.dtype = frame.dtype;
  message.operation = frame.operation;
  message.collective = frame.collective;
  message.step = frame.step;
  message.segment = frame.segment;
  message.range_offset = frame.range_offset;
  message.range_elements = frame.range_elements;
  message.offset = frame.offset;
  message.elements = frame.elements;
  return message;
}

}  // namespace gradring::comm::tcp
