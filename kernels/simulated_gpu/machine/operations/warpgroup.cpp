// SPDX-License-Identifier: Apache-2.0
// wgmma: products of matrices in shared memory by four warps, asynchronously.
#include <charconv>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/access_checks.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/machine/warpgroups.h"
#include "kernels/simulated_gpu/units/wgmma.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

/// Of shared memory: each warp reads its 16 rows of A, unless it has them in registers, and all four together read B.
/// Rows and columns are 32 bytes in every type, and conflict with none.
void count_operands(Counters::Instruction& counters, const WarpgroupProduct& product, unsigned warp) {
  constexpr unsigned kInWavefront = 4;
  constexpr unsigned kRowsOfWarp = 16;
  unsigned wavefronts = product.reads_a_from_registers ? 0 : kRowsOfWarp / kInWavefront;
  if (warp % Warpgroups::kWarps == 0) wavefronts += static_cast<unsigned>(product.columns) / kInWavefront;
  counters.wavefronts += wavefronts;
  counters.least_wavefronts += wavefronts;
}

void start_product(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  warp.block().warpgroups().start(operation, warp);
  count_operands(counters_of(operation, warp), *static_cast<const WarpgroupProduct*>(operation.details), warp.index());
}

void fence_registers(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active)) warp.block().warpgroups().fence(warp.index());
}

void commit_products(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active)) warp.block().warpgroups().commit(warp.index());
}

void wait_for_products(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active) && !warp.block().warpgroups().wait(warp, operation.immediate))
    warp.poll_again(active);
}

/// m64n128k16: the numbers behind n and k; 0 if the word is another one.
struct Shape {
  int columns = 0, k = 0;
};

Shape shape_of(std::string_view word) {
  Shape shape;
  if (!word.starts_with("m64n")) return {};
  const char* const end = word.data() + word.size();
  const auto [behind_n, error] = std::from_chars(word.data() + 4, end, shape.columns);
  if (error != std::errc() || behind_n == end || *behind_n != 'k') return {};
  const auto [behind_k, other_error] = std::from_chars(behind_n + 1, end, shape.k);
  return other_error == std::errc() && behind_k == end && is_wgmma_width(shape.columns) ? shape : Shape{};
}

/// 0 or 1 as k or mn, -1 or 1 as a sign.
std::int64_t immediate(Decoder& decoder, std::size_t operand, std::int64_t one, std::int64_t other) {
  const auto value = static_cast<std::int64_t>(decoder.constant(decoder.operand(operand)));
  const auto narrow = static_cast<std::int64_t>(static_cast<std::int32_t>(value));
  if (narrow != one && narrow != other) decoder.reject(joined("operand ", operand + 1, " is out of range"));
  return narrow;
}

/// The types of D, A and B.
void take_types(Decoder& decoder, WarpgroupProduct& details) {
  constexpr SumType kSums[] = {SumType::f16, SumType::f32, SumType::s32};
  const std::string_view sum = decoder.next();
  const std::size_t index = sum == "f16" ? 0 : sum == "f32" ? 1 : sum == "s32" ? 2 : 3;
  if (index > 2) decoder.reject("results of f16, f32 or s32 are expected");
  decoder.take(sum);
  details.sum = kSums[index];
  const auto take = [&] {
    const std::string_view word = decoder.next();
    for (const auto& [name, element] : {std::pair<std::string_view, Element>{"f16", Element::f16},
                                        {"bf16", Element::bf16},
                                        {"tf32", Element::tf32},
                                        {"e4m3", Element::e4m3},
                                        {"e5m2", Element::e5m2},
                                        {"s8", Element::s8},
                                        {"u8", Element::u8}})
      if (word == name) {
        decoder.take(word);
        return element;
      }
    decoder.reject(joined("type ", word, " is not supported here"));
  };
  details.a = take();
  details.b = take();
  details.type = details.a == Element::bf16 ? Half::bf16 : Half::f16;
  const bool one_type = details.a == details.b || (bits_of(details.a) == 8 && bits_of(details.b) == 8);
  const bool sum_fits = is_integer(details.a) == (details.sum == SumType::s32) &&
                        (details.sum != SumType::f16 || (details.a != Element::bf16 && details.a != Element::tf32));
  if (!one_type || is_integer(details.a) != is_integer(details.b) || !sum_fits)
    decoder.reject("wgmma has no such types");
}

/// wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 d, a, b, scale-d, imm-scale-a, imm-scale-b, imm-trans-a,
/// imm-trans-b: a is a descriptor, or a vector of four registers, then without imm-trans-a. Only f16 and bf16 have the
/// last two, and integers have no imm-scale.
void translate_product(Decoder& decoder, Operation& operation) {
  WarpgroupProduct details;
  const Shape shape = shape_of(decoder.next());
  if (shape.columns == 0 || !decoder.take(decoder.next())) decoder.reject("a shape m64nNkK is expected");
  details.columns = shape.columns;
  details.saturates = decoder.take("satfinite");
  take_types(decoder, details);
  if (details.k() != shape.k) decoder.reject(joined("K is ", shape.k, "; expected ", details.k(), " for this type"));
  details.reads_a_from_registers = decoder.operand(1).kind == ptx::Operand::Kind::vector;
  const std::size_t transposes = !details.has_half_operands() ? 0 : details.reads_a_from_registers ? 1 : 2;
  const std::size_t signs = is_integer(details.a) ? 0 : 2;
  decoder.finish(4 + signs + transposes);
  std::vector<Slot> slots = decoder.destinations(decoder.operand(0), Type::b32);
  if (slots.size() != details.accumulators())
    decoder.reject(joined(slots.size(), " accumulators; expected ", details.accumulators()));
  if (details.reads_a_from_registers) {
    const std::vector<Slot> fragment = decoder.sources(decoder.operand(1), Type::b32);
    if (fragment.size() != 4) decoder.reject("A has four registers");
    slots.insert(slots.end(), fragment.begin(), fragment.end());
  }
  operation.a = details.reads_a_from_registers ? decoder.frame().of_constant(0, 8) : decoder.source(1, Type::b64);
  operation.b = decoder.source(2, Type::b64);
  const ptx::Operand& scale = decoder.operand(3);
  operation.c = scale.kind == ptx::Operand::Kind::immediate ? decoder.frame().of_constant(decoder.constant(scale), 0)
                                                            : decoder.source(scale, Type::pred);
  if (signs != 0) {
    details.negates_a = immediate(decoder, 4, 1, -1) < 0;
    details.negates_b = immediate(decoder, 5, 1, -1) < 0;
  }
  if (transposes == 2) details.major_a = immediate(decoder, 6, 0, 1) != 0 ? Major::mn : Major::k;
  if (transposes != 0) details.major_b = immediate(decoder, 5 + transposes, 0, 1) != 0 ? Major::mn : Major::k;
  decoder.frame().program().warpgroup_rows.insert(slots.begin(), slots.end());
  decoder.keep(operation, std::move(slots));
  operation.details = decoder.keep_details(details);
  operation.execute = &start_product;
}

void translate_wgmma(Decoder& decoder, Operation& operation) {
  const std::size_t function = decoder.take_one_of({"mma_async", "fence", "commit_group", "wait_group"});
  if (!decoder.take("sync") || !decoder.take("aligned")) decoder.reject(".sync.aligned is expected");
  switch (function) {
    case 0: return translate_product(decoder, operation);
    case 1: operation.execute = &fence_registers; break;
    case 2: operation.execute = &commit_products; break;
    case 3:
      operation.immediate = decoder.constant(decoder.operand(0));
      operation.execute = &wait_for_products;
      break;
    default: decoder.reject("the function is not known");
  }
  decoder.finish(function == 3 ? 1 : 0);
}

constexpr Opcode kOpcodes[] = {{"wgmma", translate_wgmma}};

}  // namespace

std::span<const Opcode> warpgroup_opcodes() { return kOpcodes; }

bool is_wgmma(const Operation& operation) { return operation.execute == &start_product; }

}  // namespace gradring::simulated_gpu
