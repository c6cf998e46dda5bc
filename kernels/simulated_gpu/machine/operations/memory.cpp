// SPDX-License-Identifier: Apache-2.0
// ld and st of all state spaces, also of vectors; atom and red, lane by lane, as atomics of the host, so that blocks on
// other threads see them whole.
#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/atomic_functions.h"
#include "kernels/simulated_gpu/machine/operations/element_atomics.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

/// Accesses of a kernel that synchronise (volatile, relaxed, acquire, release) are atomics of the host.
template <class M, bool kSynchronises>
M value_at(std::uint64_t address) {
  if constexpr (kSynchronises)
    return std::atomic_ref<M>(*reinterpret_cast<M*>(address)).load(std::memory_order_acquire);
  else
    return load_from<M>(address);
}

/// M in memory, extended to R in a register. `kSynchronises`: the value may be one that a thread waits for.
template <class M, class R, bool kSynchronises>
void load(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  const std::uint64_t polled = addresses.lane[lowest_lane(active)];
  const bool is_one_address =
      resolve(operation, warp, active, details.space, Access::read, details.bytes, addresses, &details);
  bool is_new = false;
  for (unsigned i = 0; i < details.elements; ++i) {
    R* const d = warp.row<R>(operation.slots[i]);
    const auto value = [&](unsigned lane) {
      return static_cast<R>(value_at<M, kSynchronises>(addresses.lane[lane] + i * sizeof(M)));
    };
    if constexpr (kSynchronises)
      for_each_lane(active, [&](unsigned lane) {
        const R before = std::exchange(d[lane], value(lane));
        is_new |= d[lane] != before;
      });
    else if (is_one_address)
      map_lanes(
          active, [one = value(0)] { return one; }, d);
    else
      for_lanes(active, [&](unsigned lane) { d[lane] = value(lane); });
  }
  if constexpr (kSynchronises) warp.note_poll(operation, polled, is_new);
}

/// The lower bits of R as an M in memory.
template <class M, class R, bool kSynchronises>
void store(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  const Addresses addresses = resolve_operand(operation, warp, active, Access::write);
  const bool compares = kSynchronises || warp.block().compares_stores();
  bool changes = !compares;
  for (unsigned i = 0; i < details.elements; ++i) {
    const R* const value = warp.row<R>(operation.slots[i]);
    const auto put = [&](unsigned lane) {
      const std::uint64_t address = addresses.lane[lane] + i * sizeof(M);
      const M stored = static_cast<M>(value[lane]);
      if constexpr (kSynchronises)
        std::atomic_ref<M>(*reinterpret_cast<M*>(address)).store(stored, std::memory_order_release);
      else
        store_to(address, stored);
    };
    if (compares) [[unlikely]]
      for_each_lane(active, [&](unsigned lane) {
        changes |= value_at<M, kSynchronises>(addresses.lane[lane] + i * sizeof(M)) != static_cast<M>(value[lane]);
        put(lane);
      });
    else
      for_lanes(active, put);
  }
  if (!changes) return;
  warp.block().note_change();
  if constexpr (kSynchronises) warp.end_fair_turn();
}

/// How an access orders threads of its block, by its words; before they are taken.
AccessOrder order_of(const Decoder& decoder) {
  const auto has = [&](std::string_view word) { return decoder.instruction().has(word); };
  return {.is_strong = has("relaxed") || has("acquire") || has("release") || has("acq_rel"),
          .acquires = has("acquire") || has("acq_rel"),
          .releases = has("release") || has("acq_rel")};
}

/// An atom that returns a value counts as an acquire, as between blocks.
AccessOrder order_of_atomic(const Decoder& decoder, bool returns) {
  const AccessOrder order = order_of(decoder);
  return {.is_strong = true, .acquires = order.acquires || returns, .releases = order.releases};
}

/// Words that say how an access is ordered; what they order is noted by position. Accesses with the scope of a block
/// order nothing between blocks, and are like plain ones there. Returns whether there was such a word.
bool take_order(Decoder& decoder, MemoryOrder order) {
  Program& program = decoder.frame().program();
  bool is_ordered = false;
  for (const std::string_view word : {"volatile", "relaxed", "acquire", "release", "acq_rel"})
    if (decoder.take(word)) {
      is_ordered = order.is_strong = true;
      order.is_plain = false;
      order.orders_block |= word != "volatile" && word != "relaxed";
      order.is_acquire |= word.starts_with("acq");
      order.is_release |= word == "release" || word == "acq_rel";
    }
  if (decoder.take("cta")) order.is_strong = order.is_acquire = order.is_release = false;
  for (const std::string_view word : {"weak", "gpu", "cluster", "sys"}) decoder.take(word);
  if (order != MemoryOrder{}) program.orders[program.operations.size()] = order;
  return is_ordered;
}

/// The same, and words that say how long data stays in a cache: every access is immediate here. Returns whether the
/// access may be one by which threads wait for each other: it is strong, or passes by the L1 cache.
bool take_hints(Decoder& decoder) {
  bool synchronises = take_order(decoder, {});
  for (const std::string_view word : {"cg", "cv", "wt"}) synchronises |= decoder.take(word);
  Program& program = decoder.frame().program();
  if (decoder.take("nc")) program.read_only_loads.insert(program.operations.size());
  for (const std::string_view word : {"ca", "cs", "lu", "wb"}) decoder.take(word);
  for (const std::string_view word : {"no_allocate", "evict_normal", "evict_first", "evict_last", "evict_unchanged"})
    decoder.take(joined("L1::", word));
  for (const std::string_view word : {"64B", "128B", "256B", "evict_normal", "evict_first", "evict_last"})
    decoder.take(joined("L2::", word));
  return synchronises;
}

unsigned take_elements(Decoder& decoder) {
  const std::size_t vector = decoder.take_one_of({"v2", "v4"});
  return vector == 0 ? 2 : vector == 1 ? 4 : 1;
}

/// Rows of the values, and the width of their registers, which is the same for all of a vector.
unsigned decode_values(Decoder& decoder, Operation& operation, const ptx::Operand& values, Type type, unsigned elements,
                       bool is_load) {
  const bool is_vector = values.kind == ptx::Operand::Kind::vector;
  if ((is_vector ? values.parts.size() : 1) != elements)
    decoder.reject("the number of registers is not that of the vector");
  std::vector<Slot> slots;
  unsigned width = 0;
  for (unsigned i = 0; i < elements; ++i) {
    const ptx::Operand& value = is_vector ? values.parts[i] : values;
    const Decoder::Wide reg = is_load ? decoder.wide_destination(value, type) : decoder.wide_source(value, type);
    const bool is_sink = value.kind == ptx::Operand::Kind::sink;
    if (!is_sink && width != 0 && width != reg.width) decoder.reject("the registers of a vector have different widths");
    if (!is_sink) width = reg.width;
    slots.push_back(reg.slot);
  }
  decoder.keep(operation, std::move(slots));
  return width == 0 ? 8 : width;
}

template <bool kSynchronises>
Handler load_of(Decoder& decoder, Type type, unsigned width) {
  return choose_integer_or_byte(decoder, is_signed(type) ? type : bits_of(type), [&]<class M> {
    return choose_register<M>(decoder, width, []<class R> { return &load<M, R, kSynchronises>; });
  });
}

template <bool kSynchronises>
Handler store_of(Decoder& decoder, Type type, unsigned width) {
  return choose_type<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(decoder, bits_of(type), [&]<class M> {
    return choose_register<M>(decoder, width, []<class R> { return &store<M, R, kSynchronises>; });
  });
}

template <bool kLoads>
void translate_access(Decoder& decoder, Operation& operation) {
  const AccessOrder order = order_of(decoder);
  const bool synchronises = take_hints(decoder);
  const std::size_t policies = decoder.take("L2::cache_hint") ? 1 : 0;
  const StateSpace space = take_state_space(decoder);
  if (!kLoads && space == StateSpace::constant) decoder.reject("constants cannot be written");
  const unsigned elements = take_elements(decoder);
  const Type type = decoder.take_type();
  decoder.finish(2 + policies);
  const unsigned width = decode_values(decoder, operation, decoder.operand(kLoads ? 0 : 1), type, elements, kLoads);
  decode_access(decoder, operation, decoder.operand(kLoads ? 1 : 0),
                {.space = space,
                 .bytes = static_cast<unsigned>(bytes_of(type)) * elements,
                 .elements = elements,
                 .register_bytes = kLoads ? 0 : width,
                 .order = order});
  if constexpr (kLoads)
    operation.execute = synchronises ? load_of<true>(decoder, type, width) : load_of<false>(decoder, type, width);
  else
    operation.execute = synchronises ? store_of<true>(decoder, type, width) : store_of<false>(decoder, type, width);
}

/// As update(), if the lanes access one word: one after another in registers, and memory once. Returns whether one of
/// them changed the value.
template <class F, class T>
bool update_one_word(T* word, Mask active, const T* b, T (&results)[kWarpSize]) {
  const std::atomic_ref<T> value(*word);
  T before = value.load();
  T updated;
  bool changes = false;
  do {
    updated = before;
    for_each_lane(active, [&](unsigned lane) {
      results[lane] = updated;
      updated = F{}(updated, b[lane]);
      changes |= !are_same(updated, results[lane]);
    });
  } while (!value.compare_exchange_weak(before, updated));
  return changes;
}

template <class F, class T>
void update(const Operation& operation, Warp& warp, Mask active) {
  const Addresses addresses = resolve_operand(operation, warp, active, Access::atomic);
  T* const d = warp.row<T>(operation.d);
  const T* const b = warp.row<T>(operation.b);
  bool changes = false;
  bool is_new = false;
  const std::uint64_t first = addresses.lane[lowest_lane(active)];
  if ((active & ~lanes_where([&](std::uint64_t address) { return address == first; }, addresses.lane)) == 0) {
    T results[kWarpSize];
    changes = update_one_word<F>(reinterpret_cast<T*>(first), active, b, results);
    for_each_lane(active,
                  [&](unsigned lane) { is_new |= !are_same(std::exchange(d[lane], results[lane]), results[lane]); });
    return note_atomic(operation, warp, first, changes, is_new);
  }
  for_each_lane(active, [&](unsigned lane) {
    const std::atomic_ref<T> value(*reinterpret_cast<T*>(addresses.lane[lane]));
    T old = value.load();
    T updated = F{}(old, b[lane]);
    while (!value.compare_exchange_weak(old, updated)) updated = F{}(old, b[lane]);
    changes |= !are_same(updated, old);
    is_new |= !are_same(std::exchange(d[lane], old), old);
  });
  note_atomic(operation, warp, first, changes, is_new);
}

template <class T>
void compare_and_swap(const Operation& operation, Warp& warp, Mask active) {
  const Addresses addresses = resolve_operand(operation, warp, active, Access::atomic);
  T* const d = warp.row<T>(operation.d);
  const T* const expected = warp.row<T>(operation.b);
  const T* const desired = warp.row<T>(operation.c);
  bool changes = false;
  bool is_new = false;
  for_each_lane(active, [&](unsigned lane) {
    T old = expected[lane];
    const bool swaps =
        std::atomic_ref<T>(*reinterpret_cast<T*>(addresses.lane[lane])).compare_exchange_strong(old, desired[lane]);
    changes |= swaps && desired[lane] != old;
    is_new |= std::exchange(d[lane], old) != old;
  });
  note_atomic(operation, warp, addresses.lane[lowest_lane(active)], changes, is_new);
}

template <class F>
Handler of_words(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t, std::uint64_t>(decoder, bits_of(type), []<class T> { return &update<F, T>; });
}

template <class F>
Handler of_integers(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(decoder, type,
                                                                               []<class T> { return &update<F, T>; });
}

template <class F>
Handler of_u32(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t>(decoder, type, []<class T> { return &update<F, T>; });
}

Handler addition(Decoder& decoder, Type type) {
  if (type != Type::f32 && type != Type::f64) return of_words<atomics::Add>(decoder, type);
  return choose_type<float, double>(decoder, type, []<class T> { return &update<atomics::Add, T>; });
}

Handler swap_of_words(Decoder& decoder, Type type) {
  return choose_bits(decoder, type, []<class T> { return &compare_and_swap<T>; });
}

constexpr Word<Handler (*)(Decoder&, Type)> kFunctions[] = {
    {"add", addition},
    {"min", of_integers<atomics::Minimum>},
    {"max", of_integers<atomics::Maximum>},
    {"and", of_words<atomics::And>},
    {"or", of_words<atomics::Or>},
    {"xor", of_words<atomics::Xor>},
    {"exch", of_words<atomics::Exchange>},
    {"inc", of_u32<atomics::Increment>},
    {"dec", of_u32<atomics::Decrement>},
    {"cas", swap_of_words},
};

template <bool kReturns>
void translate_atomic(Decoder& decoder, Operation& operation) {
  const AccessOrder order = order_of_atomic(decoder, kReturns);
  const auto& words = decoder.instruction().words;
  take_order(decoder, {.is_strong = true,
                       .is_swap = std::ranges::find(words, "cas") != words.end(),
                       .returns_none = !kReturns,
                       .is_plain = false});
  for (const std::string_view word : {"v2", "v4", "v8", "f16", "bf16", "f16x2", "bf16x2"})
    if (decoder.instruction().has(word)) return translate_element_atomic(decoder, operation, kReturns, order);
  const StateSpace space = take_state_space(decoder);
  if (space == StateSpace::param || space == StateSpace::local || space == StateSpace::constant)
    decoder.reject("the state space has no atomics");
  const std::size_t policies = decoder.take("L2::cache_hint") ? 1 : 0;
  const auto function = take_from(decoder, kFunctions);
  if (function == nullptr) decoder.reject("the function is not known");
  const bool swaps = function == swap_of_words;
  const Type type = decoder.take_type();
  operation.execute = function(decoder, type);
  const std::size_t address = kReturns ? 1 : 0;
  decoder.finish(address + (swaps ? 3 : 2) + policies);
  operation.d = kReturns ? decoder.destination(0, type) : decoder.frame().of_sink();
  decode_access(decoder, operation, decoder.operand(address),
                {.space = space, .bytes = static_cast<unsigned>(bytes_of(type)), .order = order});
  operation.b = decoder.source(address + 1, type);
  if (swaps) operation.c = decoder.source(address + 2, type);
}

constexpr Opcode kOpcodes[] = {
    {"ld", translate_access<true>},   {"ldu", translate_access<true>},  {"st", translate_access<false>},
    {"atom", translate_atomic<true>}, {"red", translate_atomic<false>},
};

}  // namespace

std::span<const Opcode> memory_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
