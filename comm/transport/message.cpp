// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "comm/transport/sum.h"
#include "kernels/runtime/error.h"

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

void check_step(const Step& step, const Transport& transport) {
  const SegmentRange& range = step.range;
  const std::size_t room = range.segment ? range.segment->size() / size_of(range.dtype) : 0;
  check(range.slice.offset <= room && range.slice.elements <= room - range.slice.offset, [&] {
    return fmt::format("{} step {} exceeds its segment: found {} elements at {}, the segment holds {}", step.operation,
                       step.index, range.slice.elements, range.slice.offset, room);
  });
  for (const Move& move : step.moves) {
    check(move.peer >= 0 && move.peer < transport.world_size() && move.peer != transport.rank(), [&] {
      return fmt::format("{} step {} has peer {}: expected another rank of a world of {}", step.operation, step.index,
                         move.peer, transport.world_size());
    });
    check(move.slice.offset <= range.slice.elements && move.slice.elements <= range.slice.elements - move.slice.offset,
          [&] {
            return fmt::format("{} step {} exceeds its range: found {} elements at {}, the range holds {}",
                               step.operation, step.index, move.slice.elements, move.slice.offset,
                               range.slice.elements);
          });
    check(transport.reaches_peers_memory() || !is_direct(move),
          "expose and reduce_exposed need a transport that reaches its peers' memory: use send and receive");
    const bool sums = move.kind == Move::Kind::receive_add || move.kind == Move::Kind::reduce_exposed;
    check(!sums || has_sum(range.dtype), [&] {
      return fmt::format("{} does not support dtype {}: use f32, f16, bf16, i32 or i64", step.operation,
                         name_of(range.dtype));
    });
  }
}

}  // namespace gradring::comm
