// SPDX-License-Identifier: Apache-2.0
// atom and red of vectors, f16 and bf16: each element is an atomic of its own.
//
// Source    PTX ISA 9.0: 9.7.13.5 atom, 9.7.13.7 red, 9.7.9.25.4.2 cp.reduce.async.bulk.
#include "kernels/simulated_gpu/machine/operations/element_atomics.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/atomic_functions.h"
#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/units/number_format.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

using namespace atomics;

/// F of values that are computed as V, and are bits of T in memory.
template <class T, class F, class ToValue, class ToBits>
UpdatedElement update(std::uint64_t address, std::uint64_t operand, ToValue to_value, ToBits to_bits) {
  const std::atomic_ref<T> value(*reinterpret_cast<T*>(address));
  const auto updated = [&](T old) {
    return static_cast<T>(to_bits(F{}(to_value(old), to_value(static_cast<T>(operand)))));
  };
  T old = value.load();
  T made = updated(old);
  while (!value.compare_exchange_weak(old, made)) made = updated(old);
  return {.old = old, .changes = made != old};
}

template <class T, class F>
UpdatedElement update_integer(std::uint64_t address, std::uint64_t operand) {
  using U = std::make_unsigned_t<T>;
  return update<U, F>(
      address, operand, [](U bits) { return static_cast<T>(bits); },
      [](auto result) { return static_cast<U>(result); });
}

template <class T, class F>
UpdatedElement update_float(std::uint64_t address, std::uint64_t operand) {
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return update<U, F>(
      address, operand, [](U bits) { return std::bit_cast<T>(bits); },
      [](T result) { return std::bit_cast<U>(canonical(result)); });
}

/// Rounded once.
template <Half kType, class F>
UpdatedElement update_half(std::uint64_t address, std::uint64_t operand) {
  using U = std::uint16_t;
  static constexpr NumberFormat kFormat = kType == Half::f16 ? kF16 : kBF16;
  return update<U, F>(
      address, operand, [](U bits) { return number_of(kFormat, bits); },
      [](ExactNumber result) { return static_cast<U>(bits_of(kFormat, result, RoundingMode::nearest, false)); });
}

struct NamedFunction {
  std::string_view function, type;
  ElementFunction made;
};

constexpr NamedFunction kFunctions[] = {
    {"add", "u32", {4, update_integer<std::uint32_t, Add>}},
    {"add", "s32", {4, update_integer<std::uint32_t, Add>}},
    {"add", "u64", {8, update_integer<std::uint64_t, Add>}},
    {"add", "s64", {8, update_integer<std::uint64_t, Add>}},
    {"add", "f32", {4, update_float<float, Add>}},
    {"add", "f64", {8, update_float<double, Add>}},
    {"add", "f16", {2, update_half<Half::f16, Add>}},
    {"add", "bf16", {2, update_half<Half::bf16, Add>}},
    {"add", "f16x2", {2, update_half<Half::f16, Add>, true}},
    {"add", "bf16x2", {2, update_half<Half::bf16, Add>, true}},
    {"min", "u32", {4, update_integer<std::uint32_t, Minimum>}},
    {"min", "s32", {4, update_integer<std::int32_t, Minimum>}},
    {"min", "u64", {8, update_integer<std::uint64_t, Minimum>}},
    {"min", "s64", {8, update_integer<std::int64_t, Minimum>}},
    {"min", "f16", {2, update_half<Half::f16, Minimum>}},
    {"min", "bf16", {2, update_half<Half::bf16, Minimum>}},
    {"min", "f16x2", {2, update_half<Half::f16, Minimum>, true}},
    {"min", "bf16x2", {2, update_half<Half::bf16, Minimum>, true}},
    {"max", "u32", {4, update_integer<std::uint32_t, Maximum>}},
    {"max", "s32", {4, update_integer<std::int32_t, Maximum>}},
    {"max", "u64", {8, update_integer<std::uint64_t, Maximum>}},
    {"max", "s64", {8, update_integer<std::int64_t, Maximum>}},
    {"max", "f16", {2, update_half<Half::f16, Maximum>}},
    {"max", "bf16", {2, update_half<Half::bf16, Maximum>}},
    {"max", "f16x2", {2, update_half<Half::f16, Maximum>, true}},
    {"max", "bf16x2", {2, update_half<Half::bf16, Maximum>, true}},
    {"and", "b32", {4, update_integer<std::uint32_t, And>}},
    {"and", "b64", {8, update_integer<std::uint64_t, And>}},
    {"or", "b32", {4, update_integer<std::uint32_t, Or>}},
    {"or", "b64", {8, update_integer<std::uint64_t, Or>}},
    {"xor", "b32", {4, update_integer<std::uint32_t, Xor>}},
    {"xor", "b64", {8, update_integer<std::uint64_t, Xor>}},
    {"exch", "b32", {4, update_integer<std::uint32_t, Exchange>}},
    {"exch", "b64", {8, update_integer<std::uint64_t, Exchange>}},
    {"inc", "u32", {4, update_integer<std::uint32_t, Increment>}},
    {"dec", "u32", {4, update_integer<std::uint32_t, Decrement>}},
};

struct AtomicDetails : AccessDetails {
  ElementFunction function;
  std::vector<Slot> results, operands;  ///< registers, 16 or 32 bits
};

void update_elements(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AtomicDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  const std::uint64_t first = addresses.lane[lowest_lane(active)];
  resolve(operation, warp, active, details.space, Access::atomic, details.bytes, addresses, &details);
  const ElementFunction& function = details.function;
  const unsigned in_register = function.is_pair ? 2 : 1;
  bool changes = false;
  bool is_new = false;
  const auto put = [&](auto& result, auto old) { is_new |= std::exchange(result, old) != old; };
  for_each_lane(active, [&](unsigned lane) {
    std::uint64_t address = addresses.lane[lane];
    for (std::size_t i = 0; i < details.operands.size(); ++i) {
      const bool is_narrow = function.bytes * in_register == 2;
      const std::uint32_t operand = is_narrow ? warp.row<std::uint16_t>(details.operands[i])[lane]
                                              : warp.row<std::uint32_t>(details.operands[i])[lane];
      std::uint32_t old = 0;
      for (unsigned k = 0; k < in_register; ++k, address += function.bytes) {
        const UpdatedElement updated = function.update(address, operand >> 16 * k);
        old |= static_cast<std::uint32_t>(updated.old) << 16 * k;
        changes |= updated.changes;
      }
      if (is_narrow)
        put(warp.row<std::uint16_t>(details.results[i])[lane], static_cast<std::uint16_t>(old));
      else
        put(warp.row<std::uint32_t>(details.results[i])[lane], old);
    }
  });
  note_atomic(operation, warp, first, changes, is_new);
}

}  // namespace

ElementFunction take_element_function(Decoder& decoder) {
  decoder.take("noftz");
  for (const NamedFunction& row : kFunctions) {
    if (!decoder.instruction().has(row.function) || !decoder.instruction().has(row.type)) continue;
    decoder.take(row.function);
    decoder.take(row.type);
    return row.made;
  }
  decoder.reject("the function is not known for this type");
}

void translate_element_atomic(Decoder& decoder, Operation& operation, bool returns, const AccessOrder& order) {
  AtomicDetails details;
  details.order = order;
  details.space = take_state_space(decoder);
  const bool has_hint = decoder.take("L2::cache_hint");
  const std::size_t vector = decoder.take_one_of({"v2", "v4", "v8"});
  const std::size_t registers = vector < 3 ? std::size_t{2} << vector : 1;
  details.function = take_element_function(decoder);
  const std::size_t address = returns ? 1 : 0;
  decoder.finish(address + 2 + (has_hint ? 1 : 0));
  const unsigned register_bytes = details.function.bytes * (details.function.is_pair ? 2 : 1);
  if (register_bytes > 4) decoder.reject("vectors of 64-bit types have no atomics");
  const Type type = register_bytes == 2 ? Type::b16 : Type::b32;
  details.operands = decoder.sources(decoder.operand(address + 1), type);
  details.results = returns ? decoder.destinations(decoder.operand(0), type)
                            : std::vector<Slot>(registers, decoder.frame().of_sink());
  if (details.operands.size() != registers || details.results.size() != registers)
    decoder.reject("the number of registers is not that of the vector");
  details.address = decoder.address(decoder.operand(address));
  details.bytes = static_cast<unsigned>(registers) * register_bytes;
  note_shared_access(decoder, details.space, details.function.bytes);
  std::vector<Slot> slots = details.operands;
  slots.insert(slots.end(), details.results.begin(), details.results.end());
  decoder.keep(operation, std::move(slots));
  operation.details = decoder.keep_details(std::move(details));
  operation.execute = &update_elements;
}

}  // namespace gradring::simulated_gpu
