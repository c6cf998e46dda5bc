// SPDX-License-Identifier: Apache-2.0
// add.cc, addc, sub.cc, subc, mad.cc, madc: the carry goes from one to the next by the condition code of the thread.
#include <type_traits>

#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

enum class Sum : std::uint8_t { add, subtract, multiply_low, multiply_high };

struct CarryDetails {
  Slot in = 0;   ///< a predicate
  Slot out = 0;  ///< a predicate
};

template <class T>
struct Carried {
  T value = 0;
  bool carry = false;
};

template <class T>
Carried<T> add(T a, T b, bool carry) {
  T sum = 0;
  const bool first = __builtin_add_overflow(a, b, &sum);
  return {static_cast<T>(sum + carry), __builtin_add_overflow(sum, static_cast<T>(carry), &sum) || first};
}

template <class T>
Carried<T> subtract(T a, T b, bool borrow) {
  T rest = 0;
  const bool first = __builtin_sub_overflow(a, b, &rest);
  return {static_cast<T>(rest - borrow), __builtin_sub_overflow(rest, static_cast<T>(borrow), &rest) || first};
}

/// The upper half of a product, whose sign is that of S.
template <class S>
std::make_unsigned_t<S> high(S a, S b) {
  using Wide = std::conditional_t<std::is_signed_v<S>, __int128_t, __uint128_t>;
  return static_cast<std::make_unsigned_t<S>>(Wide{a} * b >> 8 * sizeof(S));
}

template <Sum kSum, class S>
void compute(const Operation& operation, Warp& warp, Mask active) {
  using T = std::make_unsigned_t<S>;
  const auto& details = *static_cast<const CarryDetails*>(operation.details);
  T* const d = warp.row<T>(operation.d);
  const S* const a = warp.row<S>(operation.a);
  const S* const b = warp.row<S>(operation.b);
  const T* const c = warp.row<T>(operation.c);
  const Mask in = warp.predicate(details.in);
  Mask out = 0;
  for_each_lane(active, [&](unsigned lane) {
    const bool carry = (in & kLaneBits[lane]) != 0;
    const T left = static_cast<T>(a[lane]), right = static_cast<T>(b[lane]);
    const Carried<T> made = kSum == Sum::add            ? add<T>(left, right, carry)
                            : kSum == Sum::subtract     ? subtract<T>(left, right, carry)
                            : kSum == Sum::multiply_low ? add<T>(static_cast<T>(left * right), c[lane], carry)
                                                        : add<T>(high<S>(a[lane], b[lane]), c[lane], carry);
    d[lane] = made.value;
    if (made.carry) out |= kLaneBits[lane];
  });
  warp.set_predicate(details.out, active, out);
}

template <Sum kSum>
Handler of_type(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(
      decoder, type, []<class T> { return &compute<kSum, T>; });
}

template <bool kReads>
void translate(Decoder& decoder, Operation& operation) {
  const std::string_view name = decoder.instruction().words.front();
  const bool multiplies = name.starts_with("mad");
  const bool writes = decoder.take("cc");
  const std::size_t part = multiplies ? decoder.take_one_of({"lo", "hi"}) : 0;
  const Type type = decoder.take_type();
  operation.execute = name.starts_with("sub") ? of_type<Sum::subtract>(decoder, type)
                      : !multiplies           ? of_type<Sum::add>(decoder, type)
                      : part == 0             ? of_type<Sum::multiply_low>(decoder, type)
                                              : of_type<Sum::multiply_high>(decoder, type);
  if (multiplies)
    decoder.read_rows(operation, type, {type, type, type});
  else
    decoder.read_rows(operation, type, {type, type});
  if (!multiplies) operation.c = operation.b;
  FrameLayout& frame = decoder.frame();
  operation.details = decoder.keep_details(CarryDetails{.in = kReads ? frame.of_carry() : frame.of_constant(0, 0),
                                                        .out = writes ? frame.of_carry() : frame.of_sink()});
}

constexpr Opcode kOpcodes[] = {
    {"add", translate<false>}, {"sub", translate<false>}, {"mad", translate<false>},
    {"addc", translate<true>}, {"subc", translate<true>}, {"madc", translate<true>},
};

}  // namespace

std::span<const Opcode> carry_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
