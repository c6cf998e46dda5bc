// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/check_step.h"

#include "comm/transport/sum.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {

void check_step(const Step& step, const Transport& transport) {
  const SegmentRange& range = step.range;
  const std::size_t room = range.segment ? range.segment->size() / size_of(range.dtype) : 0;
  check(range.slice.offset <= room && range.slice.elements <= room - range.slice.offset,
        "a step reaches past the end of its segment");
  for (const Move& move : step.moves) {
    check(move.peer >= 0 && move.peer < transport.world_size() && move.peer != transport.rank(),
          "a move names a peer that is not there");
    check(move.slice.offset <= range.slice.elements && move.slice.elements <= range.slice.elements - move.slice.offset,
          "a move reaches past the end of its range");
    check(transport.reaches_peers_memory() || !lends(move),
          "ranks that do not reach each other's memory only send and receive");
    const bool sums = move.kind == Move::Kind::receive_add || move.kind == Move::Kind::sum_lent;
    check(!sums || has_sum(range.dtype), "these elements have no sum: use f32, f16, bf16, i32 or i64");
  }
}

}  // namespace gradring::comm
