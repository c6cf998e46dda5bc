// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::simulated_gpu {

/// A number on its way from one type to another: exact for every type of PTX up to 64 bits.
using ExactNumber = long double;
static_assert(__LDBL_MANT_DIG__ >= 64);

/// nearest: ties to even; nearest_away: ties away from zero (.rna).
enum class RoundingMode : std::uint8_t { nearest, nearest_away, to_zero, down, up };

/// A floating-point type of PTX.
///
/// Source    PTX ISA 9.0: 5.2.1 Fundamental Types, 5.2.3 Alternate Floating-Point Data Formats; for e4m3 and e5m2
///           Micikevicius et al., FP8 Formats for Deep Learning, 2022.
struct NumberFormat {
  unsigned bits = 32;      ///< in a register; TF32 has 32, of which the lower 13 are not looked at
  unsigned mantissa = 23;  ///< stored bits
  int bias = 127;
  bool has_infinity = true;
  std::uint64_t nan = 0x7FFFFFFF;  ///< canonical
  std::uint64_t largest = 0;       ///< the bits of the largest finite number
};

inline constexpr NumberFormat kF16{16, 10, 15, true, 0x7FFF, 0x7BFF};
inline constexpr NumberFormat kBF16{16, 7, 127, true, 0x7FFF, 0x7F7F};
inline constexpr NumberFormat kTF32{32, 10, 127, true, 0x7FFFFFFF, 0x7F7FE000};
inline constexpr NumberFormat kF32{32, 23, 127, true, 0x7FFFFFFF, 0x7F7FFFFF};
inline constexpr NumberFormat kF64{64, 52, 1023, true, 0x7FFFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF};
inline constexpr NumberFormat kE4M3{8, 3, 7, false, 0x7F, 0x7E};
inline constexpr NumberFormat kE5M2{8, 2, 15, true, 0x7F, 0x7B};

/// The number that bits of a type stand for.
ExactNumber number_of(const NumberFormat& format, std::uint64_t bits);

/// The bits for a number. What is too large becomes infinity, or with a rounding that does not go there the largest
/// number; with `saturates` (.satfinite), and in types without infinity, always the latter. NaN is the canonical one.
std::uint64_t bits_of(const NumberFormat& format, ExactNumber number, RoundingMode mode, bool saturates);

/// To the next integer.
ExactNumber rounded_to_integer(ExactNumber number, RoundingMode mode);

}  // namespace gradring::simulated_gpu
