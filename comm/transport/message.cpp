// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "comm/transport/sum.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

std::string describe(const MessageHeader& header) {
  const std::string root = header.root == kNoRoot ? "" : fmt::format(", root {}", header.root);
  std::string step = fmt::format("{} {} ({}{}), transfer {}", header.operation.data(), header.collective,
                                 name_of(header.algorithm), root, header.step);
  if (header.segment == 0) return step;
  return fmt::format("{}, {} of {} {}{} from element {} of segment {}, at element {}", step, header.elements,
                     header.range_elements, name_of(header.dtype), header.exposed ? " exposed" : "",
                     header.range_offset, header.segment, header.offset);
}

std::string position_of(const Step& step) { return fmt::format("{} step {}", step.operation, step.index); }

bool sums(const Move& move) { return move.kind == Move::Kind::receive_add || move.kind == Move::Kind::reduce_exposed; }

void check_move(const Step& step, const Move& move, const Transport& transport) {
  const Slice& range = step.range.slice;
  check(move.peer >= 0 && move.peer < transport.world_size() && move.peer != transport.rank(), [&] {
    return fmt::format("{} has peer {}: expected another rank of a world of {}", position_of(step), move.peer,
                       transport.world_size());
  });
  check(move.slice.offset <= range.elements && move.slice.elements <= range.elements - move.slice.offset, [&] {
    return fmt::format("{} exceeds its range: found {} elements at {}, the range holds {}", position_of(step),
                       move.slice.elements, move.slice.offset, range.elements);
  });
  check(transport.reaches_peers_memory() || !is_direct(move),
        "expose and reduce_exposed need a transport that reaches its peers' memory: use send and receive");
  check(!sums(move) || has_sum(step.range.dtype), [&] {
    return fmt::format("{} does not support dtype {}: use f32, f16, bf16, i32 or i64", step.operation,
                       name_of(step.range.dtype));
  });
}

/// Messages of one pair carry no names: a second one could be taken for the first.
void check_one_message_each(const Step& step, std::vector<const Move*>& moves) {
  const auto key = [](const Move* move) { return std::tuple(is_outgoing(*move), move->peer); };
  std::ranges::sort(moves, {}, key);
  const auto second = std::ranges::adjacent_find(moves, {}, key);
  check(second == moves.end(), [&] {
    return fmt::format("{} has two messages {} rank {}: expected at most one in a step; post them in two steps",
                       position_of(step), is_outgoing(**second) ? "to" : "from", (*second)->peer);
  });
}

/// Moves run in any order, so the result would depend on it. Two ranks that exchange one slice would wait forever: each
/// writes it only when the other has read it.
void check_disjoint(const Step& step, std::vector<const Move*>& moves) {
  std::ranges::sort(moves, {}, [](const Move* move) { return move->slice.offset; });
  const auto end_of = [](const Move* move) { return move->slice.offset + move->slice.elements; };
  const Move *read = nullptr, *written = nullptr;  // the one that ends last so far
  const Move* reduction = nullptr;                 // the first; all of them write one slice together
  for (const Move* move : moves) {
    if (move->kind == Move::Kind::reduce_exposed && reduction) {
      check(move->slice == reduction->slice, [&] {
        return fmt::format(
            "{} sums two slices: found {} elements at {} and {} at {}; all reduce_exposed of a step name "
            "one slice",
            position_of(step), reduction->slice.elements, reduction->slice.offset, move->slice.elements,
            move->slice.offset);
      });
      continue;
    }
    if (move->kind == Move::Kind::reduce_exposed) reduction = move;
    if (move->slice.elements == 0) continue;
    const bool reads = move->kind == Move::Kind::send;
    const auto overlaps = [&](const Move* other) { return other && move->slice.offset < end_of(other); };
    const Move* const other = overlaps(written) ? written : !reads && overlaps(read) ? read : nullptr;
    check(!other, [&] {
      return fmt::format(
          "{} has moves that overlap: found {} elements at {} with rank {}, and {} at {} with rank {}; "
          "use disjoint slices, or two steps",
          position_of(step), other->slice.elements, other->slice.offset, other->peer, move->slice.elements,
          move->slice.offset, move->peer);
    });
    const Move*& last = reads ? read : written;
    if (!last || end_of(last) < end_of(move)) last = move;
  }
}

/// Whether these two messages, as in every step of a ring, cannot be mistaken for each other or overlap. Spares the lists
/// below.
bool are_apart(const Move& one, const Move& other) {
  const auto ends_before = [](const Slice& first, const Slice& second) {
    return first.offset + first.elements <= second.offset;
  };
  return !is_direct(one) && !is_direct(other) && (is_outgoing(one) != is_outgoing(other) || one.peer != other.peer) &&
         (ends_before(one.slice, other.slice) || ends_before(other.slice, one.slice));
}

}  // namespace

void check_rank(int rank, int world_size) {
  check(rank >= 0 && rank < world_size,
        [&] { return fmt::format("invalid rank {}: expected a rank of a world of {}", rank, world_size); });
}

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring: return "ring";
    case Algorithm::direct: return "direct";
    case Algorithm::chain: return "chain";
    case Algorithm::dissemination: return "dissemination";
    case Algorithm::doubling: return "recursive doubling";
    case Algorithm::tree: return "tree";
  }
  return "unknown";
}

MessageHeader header_of(const Step& step, const Move& move) {
  MessageHeader header;
  const std::size_t length = std::min(step.operation.size(), header.operation.size() - 1);
  std::copy_n(step.operation.begin(), length, header.operation.begin());
  header.collective = step.collective;
  header.step = step.index;
  header.segment = step.range.segment ? step.range.segment->number() : 0;
  header.range_offset = step.range.slice.offset;
  header.range_elements = step.range.slice.elements;
  header.offset = step.range.slice.offset + move.slice.offset;
  header.elements = move.slice.elements;
  header.root = step.root;
  header.algorithm = step.algorithm;
  header.dtype = step.range.dtype;
  header.exposed = is_direct(move);
  return header;
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
    return fmt::format("{} exceeds its segment: found {} elements at {}, the segment holds {}", position_of(step),
                       range.slice.elements, range.slice.offset, room);
  });
  for (const Move& move : step.moves) check_move(step, move, transport);
  if (step.moves.size() < 2 || (step.moves.size() == 2 && are_apart(step.moves[0], step.moves[1]))) return;
  std::vector<const Move*> moves;
  moves.reserve(step.moves.size());
  for (const Move& move : step.moves) moves.push_back(&move);
  check_one_message_each(step, moves);
  check_disjoint(step, moves);
}

}  // namespace gradring::comm
