// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/check_step.h"

#include <fmt/format.h>

#include "comm/transport/sum.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {

void check_step(const Step& step, const Transport& transport) {
  const SegmentRange& range = step.range;
  const std::size_t room = range.segment ? range.segment->size() / size_of(range.dtype) : 0;
  check(range.slice.offset <= room && range.slice.elements <= room - range.slice.offset,
        fmt::format("{} step {} exceeds its segment: found {} elements at {}, the segment holds {}", step.operation,
                    step.index, range.slice.elements, range.slice.offset, room));
  for (const Move& move : step.moves) {
    check(move.peer >= 0 && move.peer < transport.world_size() && move.peer != transport.rank(),
          fmt::format("{} step {} has peer {}: expected another rank of a world of {}", step.operation, step.index,
                      move.peer, transport.world_size()));
    check(move.slice.offset <= range.slice.elements && move.slice.elements <= range.slice.elements - move.slice.offset,
          fmt::format("{} step {} exceeds its range: found {} elements at {}, the range holds {}", step.operation,
                      step.index, move.slice.elements, move.slice.offset, range.slice.elements));
    check(transport.reaches_peers_memory() || !is_direct(move),
          "expose and reduce_exposed need a transport that reaches its peers' memory: use send and receive");
    const bool sums = move.kind == Move::Kind::receive_add || move.kind == Move::Kind::reduce_exposed;
    check(!sums || has_sum(range.dtype), fmt::format("{} does not support dtype {}: use f32, f16, bf16, i32 or i64",
                                                     step.operation, name_of(range.dtype)));
  }
}

}  // namespace gradring::comm
