// SPDX-License-Identifier: Apache-2.0
// mov, also to and from the elements of a vector, and of clocks; cvta.
#include <algorithm>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

using Copy = decltype([](auto a) { return a; });

void move_predicate(const Operation& operation, Warp& warp, Mask active) {
  warp.set_predicate(operation.d, active, warp.predicate(operation.a));
}

/// mov.b64 {lower, upper}, a: parts of T, of which a Whole has 2 or 4.
template <class Whole, class Part>
void unpack(const Operation& operation, Warp& warp, Mask active) {
  const Whole* const whole = warp.row<Whole>(operation.a);
  for (unsigned i = 0; i < sizeof(Whole) / sizeof(Part); ++i)
    map_lanes(
        active, [=](Whole value) { return static_cast<Part>(value >> (8 * sizeof(Part) * i)); },
        warp.row<Part>(operation.slots[i]), whole);
}

template <class Whole, class Part>
void pack(const Operation& operation, Warp& warp, Mask active) {
  alignas(64) Whole packed[kWarpSize] = {};
  for (unsigned i = 0; i < sizeof(Whole) / sizeof(Part); ++i) {
    const Part* const part = warp.row<Part>(operation.slots[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) packed[lane] |= Whole{part[lane]} << (8 * sizeof(Part) * i);
  }
  map_lanes(active, Copy{}, warp.row<Whole>(operation.d), packed);
}

/// What choose.operator()<Whole, Part>() returns for one of the three ways to divide: 64 bits in 2 or 4, 32 bits in 2.
template <class Choose>
Handler choose_parts(Decoder& decoder, Type whole, std::size_t parts, Choose choose) {
  if (whole == Type::b64 && parts == 2) return choose.template operator()<std::uint64_t, std::uint32_t>();
  if (whole == Type::b64 && parts == 4) return choose.template operator()<std::uint64_t, std::uint16_t>();
  if (whole == Type::b32 && parts == 2) return choose.template operator()<std::uint32_t, std::uint16_t>();
  decoder.reject(joined("a vector of ", parts, " elements for ", name_of(whole)));
}

Type part_type(Type whole, std::size_t parts) {
  return bytes_of(whole) / parts == 4 ? Type::b32 : bytes_of(whole) / parts == 2 ? Type::b16 : Type::none;
}

/// A register that counts time, and which of its halves is read. All lanes read the same time.
struct Clock {
  std::string_view name;
  unsigned shift = 0;
  std::uint64_t begin = 0;
};
constexpr std::uint64_t kBeginOfTime = 1'700'000'000'000'000'000;  // ns
constexpr Clock kClocks[] = {{"%clock", 0, 0},
                             {"%clock_hi", 32, 0},
                             {"%clock64", 0, 0},
                             {"%globaltimer", 0, kBeginOfTime},
                             {"%globaltimer_lo", 0, kBeginOfTime},
                             {"%globaltimer_hi", 32, kBeginOfTime}};

template <class T>
void read_clock(const Operation& operation, Warp& warp, Mask active) {
  const auto& clock = *static_cast<const Clock*>(operation.details);
  const std::uint64_t now = clock.begin + warp.block().clock().read(warp.block().program().position_of(operation));
  for_each_lane(active, [&](unsigned lane) { warp.row<T>(operation.d)[lane] = static_cast<T>(now >> clock.shift); });
}

void translate_clock(Decoder& decoder, Operation& operation, const Clock& clock, Type type) {
  operation.d = decoder.destination(0, type);
  operation.details = &clock;
  operation.execute =
      choose_type<std::uint32_t, std::uint64_t>(decoder, bits_of(type), []<class T> { return &read_clock<T>; });
}

void translate_mov(Decoder& decoder, Operation& operation) {
  const Type type = decoder.take_type();
  decoder.finish(2);
  const ptx::Operand& to = decoder.operand(0);
  const ptx::Operand& from = decoder.operand(1);
  if (from.kind == ptx::Operand::Kind::special)
    if (const auto* const clock = std::ranges::find(kClocks, from.name, &Clock::name); clock != std::end(kClocks))
      return translate_clock(decoder, operation, *clock, type);
  if (to.kind == ptx::Operand::Kind::vector) {
    operation.execute = choose_parts(decoder, bits_of(type), to.parts.size(),
                                     []<class Whole, class Part> { return &unpack<Whole, Part>; });
    decoder.keep(operation, decoder.destinations(to, part_type(type, to.parts.size())));
    operation.a = decoder.source(from, type);
  } else if (from.kind == ptx::Operand::Kind::vector) {
    operation.execute = choose_parts(decoder, bits_of(type), from.parts.size(),
                                     []<class Whole, class Part> { return &pack<Whole, Part>; });
    decoder.keep(operation, decoder.sources(from, part_type(type, from.parts.size())));
    operation.d = decoder.destination(to, type);
  } else {
    operation.d = decoder.destination(to, type);
    operation.a = decoder.source(from, type);
    operation.execute =
        type == Type::pred ? &move_predicate : choose_bits(decoder, type, []<class T> { return &unary<Copy, T, T>; });
  }
}

/// The generic address of one in a window, or back.
template <std::uint64_t kWindow>
Handler through_window(bool from_generic) {
  using ToGeneric = decltype([](std::uint64_t address) { return address + kWindow; });
  using FromGeneric = decltype([](std::uint64_t address) { return address - kWindow; });
  return from_generic ? &unary<FromGeneric, std::uint64_t, std::uint64_t>
                      : &unary<ToGeneric, std::uint64_t, std::uint64_t>;
}

void translate_cvta(Decoder& decoder, Operation& operation) {
  const bool from_generic = decoder.take("to");
  const std::size_t space = decoder.take_one_of({"global", "param", "const", "shared", "shared::cta", "local"});
  if (decoder.take_type() != Type::u64) decoder.reject("addresses have 64 bits");
  decoder.read_rows(operation, Type::u64, {Type::u64});
  switch (space) {
    case 0:
    case 1:
    case 2: operation.execute = &unary<Copy, std::uint64_t, std::uint64_t>; break;
    case 3:
    case 4: operation.execute = through_window<kSharedWindow>(from_generic); break;
    case 5: operation.execute = through_window<kLocalWindow>(from_generic); break;
    default: decoder.reject("the state space is not supported");
  }
}

constexpr Opcode kOpcodes[] = {{"mov", translate_mov}, {"cvta", translate_cvta}};

}  // namespace

std::span<const Opcode> move_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
