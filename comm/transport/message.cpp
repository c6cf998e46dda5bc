// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gradring::comm {
namespace {

std::string describe(const MessageHeader& header) {
  const std::string_view operation(header.operation.data());
  return fmt::format("{} {}, step {}, {} of {} {}{} from element {} of segment {}", operation, header.collective,
                     header.step, header.elements, header.range_elements, name_of(header.dtype),
                     header.exposed ? " exposed" : "", header.range_offset, header.segment);
}

}  // namespace

MessageHeader header_of(const Step& step, const Move& move, std::uint64_t segment) {
  MessageHeader header;
  const std::size_t length = std::min(step.operation.size(), header.operation.size() - 1);
  std::copy_n(step.operation.begin(), length, header.operation.begin());
  header.collective = step.collective;
  header.step = step.index;
  header.segment = segment;
  header.range_offset = step.range.slice.offset;
  header.range_elements = step.range.slice.elements;
  header.offset = step.range.slice.offset + move.slice.offset;
  header.elements = move.slice.elements;
  header.dtype = step.range.dtype;
  header.exposed = is_direct(move);
  return header;
}

bool matches(const MessageHeader& sent, const MessageHeader& expected) {
  return sent.collective == expected.collective && sent.step == expected.step && sent.segment == expected.segment &&
         sent.range_offset == expected.range_offset && sent.range_elements == expected.range_elements &&
         sent.elements == expected.elements && sent.dtype == expected.dtype && sent.exposed == expected.exposed &&
         sent.operation == expected.operation;
}

std::string describe_mismatch(int rank, const MessageHeader& expected, int peer, const MessageHeader& sent) {
  return fmt::format(
      "ranks are out of sync: rank {} is in {}, but rank {} sent data for {}; make the same calls in the same order on "
      "the same ranges on all ranks",
      rank, describe(expected), peer, describe(sent));
}

}  // namespace gradring::comm
