// SPDX-License-Identifier: Apache-2.0
// tanh and ex2 of f16, bf16 and pairs: rounded from double.
//
// Source    PTX ISA 9.0: 9.7.4.9 tanh, 9.7.4.10 ex2.
#include <cmath>

#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/number_format.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

struct FunctionDetails {
  double (*function)(double) = nullptr;
  NumberFormat format;
  bool is_pair = false;
  bool flushes = false;
};

std::uint16_t of_half(const FunctionDetails& details, std::uint16_t bits) {
  const std::uint16_t exponents = details.format.mantissa == 10 ? 0x7C00 : 0x7F80;
  const auto flushed_bits = [&](std::uint16_t value) {
    return details.flushes && (value & exponents) == 0 ? static_cast<std::uint16_t>(value & 0x8000) : value;
  };
  const double value = details.function(static_cast<double>(number_of(details.format, flushed_bits(bits))));
  return flushed_bits(
      static_cast<std::uint16_t>(bits_of(details.format, ExactNumber{value}, RoundingMode::nearest, false)));
}

void apply(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const FunctionDetails*>(operation.details);
  for_each_lane(active, [&](unsigned lane) {
    if (!details.is_pair) {
      warp.row<std::uint16_t>(operation.d)[lane] = of_half(details, warp.row<std::uint16_t>(operation.a)[lane]);
      return;
    }
    const std::uint32_t both = warp.row<std::uint32_t>(operation.a)[lane];
    warp.row<std::uint32_t>(operation.d)[lane] = std::uint32_t{of_half(details, static_cast<std::uint16_t>(both >> 16))}
                                                     << 16 |
                                                 of_half(details, static_cast<std::uint16_t>(both));
  });
}

template <double (*kFunction)(double)>
void translate(Decoder& decoder, Operation& operation) {
  if (!decoder.take("approx")) decoder.reject(".approx is expected");
  const bool flushes = decoder.take("ftz");
  const std::size_t type = decoder.take_one_of({"f16", "f16x2", "bf16", "bf16x2"});
  if (type > 3) decoder.reject("a type f16, f16x2, bf16 or bf16x2 is expected");
  const FunctionDetails details{kFunction, type < 2 ? kF16 : kBF16, type % 2 == 1, flushes};
  const Type bits = details.is_pair ? Type::b32 : Type::b16;
  decoder.read_rows(operation, bits, {bits});
  operation.details = decoder.keep_details(details);
  operation.execute = &apply;
}

double tangent(double a) { return std::tanh(a); }
double power(double a) { return std::exp2(a); }

constexpr Opcode kOpcodes[] = {{"tanh", translate<tangent>}, {"ex2", translate<power>}};

}  // namespace

std::span<const Opcode> half_function_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
