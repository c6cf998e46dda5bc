// SPDX-License-Identifier: Apache-2.0
// cvt of every pair of types, with every modifier, by the exact value: those that conversion.cpp does not know, which
// has the frequent ones. cvt.pack.
//
// Source    PTX ISA 9.0: 9.7.9.21 cvt, 9.7.9.22 cvt.pack.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/number_format.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

/// An integer or floating-point type, alone or packed in twos.
struct ValueType {
  std::optional<NumberFormat> format;  ///< none: an integer
  unsigned bits = 32;
  bool is_signed = false;
  bool is_pair = false;

  unsigned register_bytes() const { return std::max(2u, bits / 8 * (is_pair ? 2 : 1)); }
};

struct NamedType {
  std::string_view name;
  ValueType type;
};

ValueType floating(const NumberFormat& format, bool is_pair = false) { return {format, format.bits, true, is_pair}; }

/// Takes the next word, which must be a type.
ValueType take_value_type(Decoder& decoder) {
  const NamedType types[] = {
      {"f16", floating(kF16)},
      {"bf16", floating(kBF16)},
      {"tf32", floating(kTF32)},
      {"f32", floating(kF32)},
      {"f64", floating(kF64)},
      {"f16x2", floating(kF16, true)},
      {"bf16x2", floating(kBF16, true)},
      {"e4m3x2", floating(kE4M3, true)},
      {"e5m2x2", floating(kE5M2, true)},
      {"u8", {{}, 8, false}},
      {"s8", {{}, 8, true}},
      {"u16", {{}, 16, false}},
      {"s16", {{}, 16, true}},
      {"u32", {{}, 32, false}},
      {"s32", {{}, 32, true}},
      {"u64", {{}, 64, false}},
      {"s64", {{}, 64, true}},
  };
  for (const NamedType& known : types)
    if (decoder.next() == known.name) {
      decoder.take(known.name);
      return known.type;
    }
  decoder.reject(joined("type ", decoder.next(), " is not supported here"));
}

/// A register as it is read or written, which may be wider than the type.
struct WideRegister {
  Slot slot = 0;
  unsigned width = 0;
};

struct ConversionDetails {
  ValueType to, from;
  RoundingMode mode = RoundingMode::nearest;
  bool rounds_to_integer = false;  ///< .rni, ... between floating-point types
  bool saturates = false;          ///< .sat
  bool is_finite = false;          ///< .satfinite
  bool relu = false;
  bool flushes = false;
  WideRegister d;
  std::vector<WideRegister> sources;  ///< two: the upper, then the lower half of a pair
};

std::uint64_t load(Warp& warp, const WideRegister& reg, unsigned lane) {
  switch (reg.width) {
    case 2: return warp.row<std::uint16_t>(reg.slot)[lane];
    case 4: return warp.row<std::uint32_t>(reg.slot)[lane];
    default: return warp.row<std::uint64_t>(reg.slot)[lane];
  }
}

void store(Warp& warp, const WideRegister& reg, unsigned lane, std::uint64_t bits) {
  switch (reg.width) {
    case 2: warp.row<std::uint16_t>(reg.slot)[lane] = static_cast<std::uint16_t>(bits); break;
    case 4: warp.row<std::uint32_t>(reg.slot)[lane] = static_cast<std::uint32_t>(bits); break;
    default: warp.row<std::uint64_t>(reg.slot)[lane] = bits; break;
  }
}

std::uint64_t masked(std::uint64_t bits, unsigned count) {
  return count == 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
}

ExactNumber value_of(const ValueType& type, std::uint64_t bits) {
  bits = masked(bits, type.bits);
  if (type.format) return number_of(*type.format, bits);
  if (!type.is_signed) return static_cast<ExactNumber>(bits);
  return static_cast<ExactNumber>(static_cast<std::int64_t>(bits << (64 - type.bits)) >> (64 - type.bits));
}

ExactNumber flushed_f32(ExactNumber value) {
  return std::fabs(value) < 0x1p-126L ? std::copysign(ExactNumber{0}, value) : value;
}

/// Clamped to the range of the type. NaN is as in conversion.cpp.
std::uint64_t integer_of(const ConversionDetails& details, ExactNumber value) {
  const unsigned bits = details.to.bits;
  if (std::isnan(value)) return bits == 64 || details.from.bits == 64 ? std::uint64_t{1} << (bits - 1) : 0;
  const ExactNumber whole = rounded_to_integer(value, details.mode);
  const ExactNumber end = std::ldexp(ExactNumber{1}, static_cast<int>(details.to.is_signed ? bits - 1 : bits));
  const ExactNumber begin = details.to.is_signed ? -end : ExactNumber{0};
  const ExactNumber clamped = std::clamp(whole, begin, end - 1);
  return clamped < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(clamped))
                     : static_cast<std::uint64_t>(clamped);
}

std::uint64_t converted(const ConversionDetails& details, std::uint64_t bits) {
  if (!details.to.format && !details.from.format && !details.saturates) {  // modulo 2^N
    const std::uint64_t value = masked(bits, details.from.bits);
    const unsigned unused = 64 - details.from.bits;
    return details.from.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused)
                                  : value;
  }
  ExactNumber value = value_of(details.from, bits);
  const bool flushes_source = details.flushes && details.from.format && details.from.bits == 32;
  if (flushes_source) value = flushed_f32(value);
  if (!details.to.format) return integer_of(details, value);
  if (details.rounds_to_integer) value = rounded_to_integer(value, details.mode);
  if (details.saturates) value = value > 0 ? std::min<ExactNumber>(value, 1) : 0;
  if (details.relu && (std::signbit(value) && !std::isnan(value))) value = 0;
  const std::uint64_t result = bits_of(*details.to.format, value, details.mode, details.is_finite);
  const bool is_subnormal_f32 = details.to.bits == 32 && (result & 0x7F800000) == 0;
  return details.flushes && is_subnormal_f32 ? result & 0x80000000 : result;
}

void convert(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const ConversionDetails*>(operation.details);
  const bool has_two = details.sources.size() == 2;
  for_each_lane(active, [&](unsigned lane) {
    const std::uint64_t first = load(warp, details.sources[0], lane);
    std::uint64_t result = converted(details, has_two ? load(warp, details.sources[1], lane) : first);
    if (details.to.is_pair) {
      const std::uint64_t upper = converted(details, has_two ? first : first >> details.from.bits);
      result = masked(result, details.to.bits) | upper << details.to.bits;
    }
    // An 8-bit integer is extended to its register.
    if (details.to.bits == 8 && !details.to.is_pair)
      result = details.to.is_signed
                   ? static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int8_t>(result)))
                   : result & 0xFF;
    store(warp, details.d, lane, result);
  });
}

WideRegister wide_register(const Decoder::Wide& wide) { return {wide.slot, wide.width}; }

Type register_type(const ValueType& type) {
  return type.register_bytes() == 2 ? Type::b16 : type.register_bytes() == 4 ? Type::b32 : Type::b64;
}

/// A register of the type's width, or for integers a wider one.
WideRegister source_of(Decoder& decoder, std::size_t operand, const ValueType& type) {
  if (type.format) {
    // A literal is one of f32 or f64.
    const Type exact = !type.is_pair && type.bits == 32   ? Type::f32
                       : !type.is_pair && type.bits == 64 ? Type::f64
                                                          : register_type(type);
    return {decoder.source(operand, exact), type.register_bytes()};
  }
  return wide_register(decoder.wide_source(decoder.operand(operand), type.bits == 8 ? Type::b8 : register_type(type)));
}

WideRegister destination_of(Decoder& decoder, const ValueType& type) {
  const Decoder::Wide wide =
      decoder.wide_destination(decoder.operand(0), type.bits == 8 && !type.is_pair ? Type::b8 : register_type(type));
  return wide_register(wide);
}

/// d = a and b, clamped to 16 or 8 bits each, and c above them.
struct PackDetails {
  unsigned bits = 16;
  bool is_signed = true;
  bool shifts = false;  ///< c is there
};

void pack(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const PackDetails*>(operation.details);
  const std::int64_t end = std::int64_t{1} << (details.is_signed ? details.bits - 1 : details.bits);
  for_each_lane(active, [&](unsigned lane) {
    const auto clamped = [&](Slot slot) {
      const std::int64_t value = warp.row<std::int32_t>(slot)[lane];
      return masked(static_cast<std::uint64_t>(std::clamp(value, details.is_signed ? -end : 0, end - 1)), details.bits);
    };
    std::uint64_t result = clamped(operation.a) << details.bits | clamped(operation.b);
    if (details.shifts) result |= std::uint64_t{warp.row<std::uint32_t>(operation.c)[lane]} << 2 * details.bits;
    warp.row<std::uint32_t>(operation.d)[lane] = static_cast<std::uint32_t>(result);
  });
}

void translate_pack(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sat")) decoder.reject(".sat is expected");
  const ValueType to = take_value_type(decoder);
  if (decoder.take_type() != Type::s32 || to.bits > 16) decoder.reject("s32 to 8 or 16 bits is expected");
  const PackDetails details{.bits = to.bits, .is_signed = to.is_signed, .shifts = decoder.take("b32")};
  if (details.shifts)
    decoder.read_rows(operation, Type::b32, {Type::s32, Type::s32, Type::b32});
  else
    decoder.read_rows(operation, Type::b32, {Type::s32, Type::s32});
  operation.details = decoder.keep_details(details);
  operation.execute = &pack;
}

}  // namespace

void translate_any_conversion(Decoder& decoder, Operation& operation) {
  if (decoder.take("pack")) return translate_pack(decoder, operation);
  ConversionDetails details;
  constexpr RoundingMode kModes[] = {RoundingMode::nearest, RoundingMode::to_zero, RoundingMode::down,
                                     RoundingMode::up};
  if (const std::size_t way = decoder.take_one_of({"rn", "rz", "rm", "rp"}); way < 4) details.mode = kModes[way];
  if (const std::size_t way = decoder.take_one_of({"rni", "rzi", "rmi", "rpi"}); way < 4) {
    details.mode = kModes[way];
    details.rounds_to_integer = true;
  }
  if (decoder.take("rna")) details.mode = RoundingMode::nearest_away;
  details.relu = decoder.take("relu");
  details.is_finite = decoder.take("satfinite");
  details.flushes = decoder.take("ftz");
  details.saturates = decoder.take("sat");
  details.to = take_value_type(decoder);
  details.from = take_value_type(decoder);
  const bool has_two = details.to.is_pair && !details.from.is_pair;
  if (details.from.is_pair && !details.to.is_pair) decoder.reject("the conversion is not supported");
  decoder.finish(has_two ? 3 : 2);
  details.d = destination_of(decoder, details.to);
  for (std::size_t i = 1; i < decoder.operand_count(); ++i)
    details.sources.push_back(source_of(decoder, i, details.from));
  operation.details = decoder.keep_details(std::move(details));
  operation.execute = &convert;
}

}  // namespace gradring::simulated_gpu
