// SPDX-License-Identifier: Apache-2.0
// ld and st of all state spaces, also of vectors.
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

/// M in memory, extended to R in a register.
template <class M, class R>
void load(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  const bool is_one_address = resolve(operation, warp, active, details.space, Access::read, details.bytes, addresses);
  for (unsigned i = 0; i < details.elements; ++i) {
    R* const d = warp.row<R>(operation.slots[i]);
    const auto value = [&](unsigned lane) {
      return static_cast<R>(load_from<M>(addresses.lane[lane] + i * sizeof(M)));
    };
    if (is_one_address)
      map_lanes(
          active, [one = value(0)] { return one; }, d);
    else
      for_lanes(active, [&](unsigned lane) { d[lane] = value(lane); });
  }
}

/// The lower bits of R as an M in memory.
template <class M, class R>
void store(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  resolve(operation, warp, active, details.space, Access::write, details.bytes, addresses);
  for (unsigned i = 0; i < details.elements; ++i) {
    const R* const value = warp.row<R>(operation.slots[i]);
    for_lanes(active,
              [&](unsigned lane) { store_to(addresses.lane[lane] + i * sizeof(M), static_cast<M>(value[lane])); });
  }
}

/// The handler for a type in memory and a register that is at least as wide.
template <template <class, class> class F, class M>
Handler for_register(Decoder& decoder, unsigned width) {
  if constexpr (sizeof(M) <= 2)
    if (width == 2) return F<M, std::uint16_t>::kHandler;
  if constexpr (sizeof(M) <= 4)
    if (width == 4) return F<M, std::uint32_t>::kHandler;
  if (width == 8) return F<M, std::uint64_t>::kHandler;
  decoder.reject("the register is too narrow");
}

template <class M, class R>
struct Load {
  static constexpr Handler kHandler = &load<M, R>;
};

template <class M, class R>
struct Store {
  static constexpr Handler kHandler = &store<M, R>;
};

/// Words that say how long data stays in a cache, or how an access is ordered: every access is immediate here.
void take_hints(Decoder& decoder) {
  Program& program = decoder.frame().program();
  for (const std::string_view word : {"volatile", "relaxed", "acquire", "release"})
    if (decoder.take(word)) program.strong_accesses.insert(program.operations.size());
  for (const std::string_view word : {"weak",
                                      "gpu",
                                      "cta",
                                      "cluster",
                                      "sys",
                                      "ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "nc",
                                      "L1::no_allocate",
                                      "L1::evict_normal",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B"})
    decoder.take(word);
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

void translate_ld(Decoder& decoder, Operation& operation) {
  take_hints(decoder);
  const StateSpace space = take_state_space(decoder);
  const unsigned elements = take_elements(decoder);
  const Type type = decoder.take_type();
  decoder.finish(2);
  const unsigned width = decode_values(decoder, operation, decoder.operand(0), type, elements, true);
  decode_access(decoder, operation, decoder.operand(1),
                {.space = space, .bytes = static_cast<unsigned>(bytes_of(type)) * elements, .elements = elements});
  const Type read = is_signed(type) ? type : bits_of(type);
  operation.execute =
      choose_type<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, std::uint64_t,
                  std::int64_t>(decoder, read, [&]<class M> { return for_register<Load, M>(decoder, width); });
}

void translate_st(Decoder& decoder, Operation& operation) {
  take_hints(decoder);
  const StateSpace space = take_state_space(decoder);
  if (space == StateSpace::param) decoder.reject("parameters cannot be written");
  const unsigned elements = take_elements(decoder);
  const Type type = decoder.take_type();
  decoder.finish(2);
  const unsigned width = decode_values(decoder, operation, decoder.operand(1), type, elements, false);
  decode_access(decoder, operation, decoder.operand(0),
                {.space = space, .bytes = static_cast<unsigned>(bytes_of(type)) * elements, .elements = elements});
  operation.execute = choose_type<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(
      decoder, bits_of(type), [&]<class M> { return for_register<Store, M>(decoder, width); });
}

constexpr Opcode kOpcodes[] = {{"ld", translate_ld}, {"ldu", translate_ld}, {"st", translate_st}};

}  // namespace

std::span<const Opcode> memory_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
