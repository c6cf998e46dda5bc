// SPDX-License-Identifier: Apache-2.0
// wgmma: products of matrices in shared memory by four warps, asynchronously.
#include <charconv>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/machine/warpgroups.h"
#include "kernels/simulated_gpu/units/wgmma.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

void start_product(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active)) warp.block().warpgroups().start(operation, warp);
}

void fence_registers(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active)) warp.block().warpgroups().fence(warp.index());
}

void commit_products(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active)) warp.block().warpgroups().commit(warp.index());
}

void wait_for_products(const Operation& operation, Warp& warp, Mask active) {
  if (is_whole_warp(operation, warp, active) && !warp.block().warpgroups().wait(warp, operation.immediate))
    warp.poll_again();
}

/// m64n128k16: 128; 0 if the word is another one.
int columns_of(std::string_view shape) {
  int columns = 0;
  if (!shape.starts_with("m64n") || !shape.ends_with("k16")) return 0;
  const char* const end = shape.data() + shape.size() - 3;
  const auto [parsed, error] = std::from_chars(shape.data() + 4, end, columns);
  return error == std::errc() && parsed == end && is_wgmma_width(columns) ? columns : 0;
}

/// 0 or 1 as k or mn, -1 or 1 as a sign.
std::int64_t immediate(Decoder& decoder, std::size_t operand, std::int64_t one, std::int64_t other) {
  const auto value = static_cast<std::int64_t>(decoder.constant(decoder.operand(operand)));
  const auto narrow = static_cast<std::int64_t>(static_cast<std::int32_t>(value));
  if (narrow != one && narrow != other) decoder.reject(joined("operand ", operand + 1, " is out of range"));
  return narrow;
}

/// wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 d, a, b, scale-d, imm-scale-a, imm-scale-b, imm-trans-a,
/// imm-trans-b: a is a descriptor, or a vector of four registers, then without imm-trans-a.
void translate_product(Decoder& decoder, Operation& operation) {
  WarpgroupProduct details;
  details.columns = columns_of(decoder.next());
  if (details.columns == 0 || !decoder.take(decoder.next())) decoder.reject("a shape m64nNk16 is expected");
  if (decoder.take_type() != Type::f32) decoder.reject("results of f32 are expected");
  details.type = take_half_types(decoder);
  details.reads_a_from_registers = decoder.operand(1).kind == ptx::Operand::Kind::vector;
  decoder.finish(details.reads_a_from_registers ? 7 : 8);
  std::vector<Slot> slots = decoder.destinations(decoder.operand(0), Type::f32);
  if (slots.size() != static_cast<std::size_t>(details.columns) / 2)
    decoder.reject(joined(slots.size(), " accumulators; expected ", details.columns / 2));
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
  details.negates_a = immediate(decoder, 4, 1, -1) < 0;
  details.negates_b = immediate(decoder, 5, 1, -1) < 0;
  std::size_t next = 6;
  if (!details.reads_a_from_registers) details.major_a = immediate(decoder, next++, 0, 1) != 0 ? Major::mn : Major::k;
  details.major_b = immediate(decoder, next, 0, 1) != 0 ? Major::mn : Major::k;
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
