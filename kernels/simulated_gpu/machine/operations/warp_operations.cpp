// SPDX-License-Identifier: Apache-2.0
// shfl.sync, vote.sync, match.sync, redux.sync, activemask: values of other lanes of the warp.
#include <functional>

#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

enum class Shuffle : std::uint8_t { up, down, butterfly, index };

struct ShuffleDetails {
  Shuffle way = Shuffle::index;
  Slot members = 0;
  Slot in_range = 0;  ///< a predicate
};

/// PTX ISA, shfl.sync: the lane that is read, and whether it is in range. Out of range, a lane reads its own value.
struct SourceLane {
  unsigned lane = 0;
  bool in_range = false;
};

SourceLane source_lane(Shuffle way, unsigned lane, std::uint32_t b, std::uint32_t c) {
  const unsigned delta = b & 31;
  const unsigned segment = c >> 8 & 31;
  const unsigned clamp = c & 31;
  const unsigned first = lane & segment;
  const unsigned last = first | (clamp & ~segment);
  unsigned from = 0;
  switch (way) {
    case Shuffle::up: from = lane - delta; break;
    case Shuffle::down: from = lane + delta; break;
    case Shuffle::butterfly: from = lane ^ delta; break;
    case Shuffle::index: from = first | (delta & ~segment); break;
  }
  const bool in_range = way == Shuffle::up ? static_cast<int>(from) >= static_cast<int>(last) : from <= last;
  return {in_range ? from : lane, in_range};
}

void shuffle_group(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const ShuffleDetails*>(operation.details);
  const std::uint32_t* const a = warp.row<std::uint32_t>(operation.a);
  const std::uint32_t* const b = warp.row<std::uint32_t>(operation.b);
  const std::uint32_t* const c = warp.row<std::uint32_t>(operation.c);
  std::uint32_t results[kWarpSize];
  Mask in_range = 0;
  for_each_lane(active, [&](unsigned lane) {
    const SourceLane source = source_lane(details.way, lane, b[lane], c[lane]);
    if ((active & kLaneBits[source.lane]) == 0) [[unlikely]]
      note_finding(warp, FindingKind::undefined_value, operation, lane, [&] {
        return joined("shfl.sync reads lane ", source.lane, ", which does not take part: its value is undefined");
      });
    results[lane] = a[source.lane];
    if (source.in_range) in_range |= kLaneBits[lane];
  });
  std::uint32_t* const d = warp.row<std::uint32_t>(operation.d);
  for_each_lane(active, [&](unsigned lane) { d[lane] = results[lane]; });
  warp.set_predicate(details.in_range, active, in_range);
}

void shuffle(const Operation& operation, Warp& warp, Mask active) {
  for_each_group(operation, warp, active, static_cast<const ShuffleDetails*>(operation.details)->members,
                 [&](Mask group) { shuffle_group(operation, warp, group); });
}

enum class Vote : std::uint8_t { all, any, uniform, ballot };

struct VoteDetails {
  Vote way = Vote::all;
  Mask flip = 0;  ///< all lanes if the predicate is negated
};

void vote_of_group(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const VoteDetails*>(operation.details);
  const Mask votes = (warp.predicate(operation.a) ^ details.flip) & active;
  const Vote way = details.way;
  if (way == Vote::ballot) {
    for_each_lane(active, [&](unsigned lane) { warp.row<Mask>(operation.d)[lane] = votes; });
    return;
  }
  const bool result = way == Vote::all   ? votes == active
                      : way == Vote::any ? votes != 0
                                         : votes == active || votes == 0;
  warp.set_predicate(operation.d, active, result ? kAllLanes : 0);
}

/// match.any.sync: the lanes with the same value.
template <class T>
void match_in_group(const Operation& operation, Warp& warp, Mask active) {
  const T* const a = warp.row<T>(operation.a);
  Mask found[kWarpSize];
  for_each_lane(
      active, [&](unsigned lane) { found[lane] = active & lanes_where([&](T value) { return value == a[lane]; }, a); });
  for_each_lane(active, [&](unsigned lane) { warp.row<Mask>(operation.d)[lane] = found[lane]; });
}

/// match.all.sync: all lanes, and true, if they have one value.
template <class T>
void match_all_of_group(const Operation& operation, Warp& warp, Mask active) {
  const T* const a = warp.row<T>(operation.a);
  const T first = a[lowest_lane(active)];
  const bool same = (active & ~lanes_where([&](T value) { return value == first; }, a)) == 0;
  for_each_lane(active, [&](unsigned lane) { warp.row<Mask>(operation.d)[lane] = same ? active : 0; });
  warp.set_predicate(operation.c, active, same ? kAllLanes : 0);
}

/// elect.sync: the lowest lane.
void elect_of_group(const Operation& operation, Warp& warp, Mask active) {
  const unsigned leader = lowest_lane(active);
  for_each_lane(active, [&](unsigned lane) { warp.row<std::uint32_t>(operation.d)[lane] = leader; });
  warp.set_predicate(operation.c, active, kLaneBits[leader]);
}

template <class F, class T>
void reduce_group(const Operation& operation, Warp& warp, Mask active) {
  const T* const a = warp.row<T>(operation.a);
  T result = a[lowest_lane(active)];
  for_each_lane(active & (active - 1), [&](unsigned lane) { result = F{}(result, a[lane]); });
  for_each_lane(active, [&](unsigned lane) { warp.row<T>(operation.d)[lane] = result; });
}

/// An instruction whose member mask is in row b.
template <Handler kExecuteGroup>
void in_groups(const Operation& operation, Warp& warp, Mask active) {
  for_each_group(operation, warp, active, operation.b, [&](Mask group) { kExecuteGroup(operation, warp, group); });
}

void active_mask(const Operation& operation, Warp& warp, Mask active) {
  for_each_lane(active, [&](unsigned lane) { warp.row<Mask>(operation.d)[lane] = active; });
}

/// shfl.sync.up.b32 d|p, a, b, c, members
void translate_shfl(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync")) decoder.reject(".sync is expected");
  const std::size_t way = decoder.take_one_of({"up", "down", "bfly", "idx"});
  if (way > 3 || decoder.take_type() != Type::b32) decoder.reject("expected .up, .down, .bfly or .idx, and b32");
  decoder.finish(5);
  const auto [value, in_range] = decoder.results(0);
  operation.d = decoder.destination(*value, Type::b32);
  ShuffleDetails details{.way = static_cast<Shuffle>(way), .in_range = decoder.destination(*in_range, Type::pred)};
  operation.a = decoder.source(1, Type::b32);
  operation.b = decoder.source(2, Type::b32);
  operation.c = decoder.source(3, Type::b32);
  details.members = decoder.source(4, Type::b32);
  operation.details = decoder.keep_details(details);
  operation.execute = &shuffle;
}

void translate_vote(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync")) decoder.reject(".sync is expected");
  const std::size_t way = decoder.take_one_of({"all", "any", "uni", "ballot"});
  const Type type = decoder.take_type();
  const Type expected = way == static_cast<std::size_t>(Vote::ballot) ? Type::b32 : Type::pred;
  if (way > 3 || type != expected) decoder.reject("expected .all.pred, .any.pred, .uni.pred or .ballot.b32");
  decoder.finish(3);
  operation.d = decoder.destination(0, type);
  const Decoder::Predicate predicate = decoder.predicate(decoder.operand(1));
  operation.a = predicate.slot;
  operation.b = decoder.source(2, Type::b32);
  operation.details = decoder.keep_details(VoteDetails{static_cast<Vote>(way), predicate.flip});
  operation.execute = &in_groups<&vote_of_group>;
}

template <class F>
Handler of_sign(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t, std::int32_t>(decoder, type,
                                                  []<class T> { return &in_groups<&reduce_group<F, T>>; });
}

template <class F>
Handler of_bits(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t>(decoder, bits_of(type), []<class T> { return &in_groups<&reduce_group<F, T>>; });
}

constexpr Word<Handler (*)(Decoder&, Type)> kReductions[] = {
    {"add", of_bits<std::plus<>>},    {"min", of_sign<IntegerMinimum>}, {"max", of_sign<IntegerMaximum>},
    {"and", of_bits<std::bit_and<>>}, {"or", of_bits<std::bit_or<>>},   {"xor", of_bits<std::bit_xor<>>},
};

void translate_match(Decoder& decoder, Operation& operation) {
  const std::size_t way = decoder.take_one_of({"any", "all"});
  if (way > 1 || !decoder.take("sync")) decoder.reject("expected .any.sync or .all.sync");
  const Type type = decoder.take_type();
  if (way == 1) {
    decoder.finish(3);
    const auto [mask, same] = decoder.results(0);
    operation.d = decoder.destination(*mask, Type::b32);
    operation.c = decoder.destination(*same, Type::pred);
    operation.a = decoder.source(1, type);
    operation.b = decoder.source(2, Type::b32);
    operation.execute = choose_type<std::uint32_t, std::uint64_t>(
        decoder, type, []<class T> { return &in_groups<&match_all_of_group<T>>; });
    return;
  }
  decoder.read_rows(operation, Type::b32, {type, Type::b32});
  operation.execute =
      choose_type<std::uint32_t, std::uint64_t>(decoder, type, []<class T> { return &in_groups<&match_in_group<T>>; });
}

/// elect.sync d|p, members
void translate_elect(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync")) decoder.reject(".sync is expected");
  decoder.finish(2);
  const auto [leader, is_leader] = decoder.results(0);
  operation.d = decoder.destination(*leader, Type::b32);
  operation.c = decoder.destination(*is_leader, Type::pred);
  operation.b = decoder.source(1, Type::b32);
  operation.execute = &in_groups<&elect_of_group>;
}

void translate_redux(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync")) decoder.reject(".sync is expected");
  const auto choose = take_from(decoder, kReductions);
  if (choose == nullptr) decoder.reject("the function is not known");
  const Type type = decoder.take_type();
  decoder.read_rows(operation, type, {type, Type::b32});
  operation.execute = choose(decoder, type);
}

void translate_activemask(Decoder& decoder, Operation& operation) {
  if (decoder.take_type() != Type::b32) decoder.reject("type b32 is expected");
  decoder.read_rows(operation, Type::b32, {});
  operation.execute = &active_mask;
}

constexpr Opcode kOpcodes[] = {{"shfl", translate_shfl},   {"vote", translate_vote},
                               {"match", translate_match}, {"elect", translate_elect},
                               {"redux", translate_redux}, {"activemask", translate_activemask}};

}  // namespace

std::span<const Opcode> warp_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
