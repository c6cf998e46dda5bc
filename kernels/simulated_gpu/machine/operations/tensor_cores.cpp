// SPDX-License-Identifier: Apache-2.0
// mma, wmma, ldmatrix, stmatrix: by all lanes of a warp together.
#include <algorithm>
#include <cstring>

#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/mma.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

template <class R, std::size_t kCount>
std::array<R, kCount> rows(Warp& warp, const Slot* slots) {
  std::array<R, kCount> found;
  for (std::size_t i = 0; i < kCount; ++i) found[i] = warp.row<std::uint32_t>(slots[i]);
  return found;
}

/// Rows d, a, b, c: B has as many registers as k has multiples of 8, A has twice as many.
template <Half kType, std::size_t kRegistersOfB>
void multiply(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const Slot* const a = operation.slots + 4;
  const Slot* const b = a + 2 * kRegistersOfB;
  mma_m16n8(kType, rows<ConstRow, 2 * kRegistersOfB>(warp, a), rows<ConstRow, kRegistersOfB>(warp, b),
            rows<ConstRow, 4>(warp, b + kRegistersOfB), rows<Row, 4>(warp, operation.slots));
}

/// Appends the rows of a vector of this size.
void append(Decoder& decoder, std::vector<Slot>& slots, std::size_t operand, Type type, std::size_t count,
            bool is_result) {
  const std::vector<Slot> own = is_result ? decoder.destinations(decoder.operand(operand), type)
                                          : decoder.sources(decoder.operand(operand), type);
  if (own.size() != count)
    decoder.reject(joined("operand ", operand + 1, " has ", own.size(), " registers; expected ", count));
  slots.insert(slots.end(), own.begin(), own.end());
}

/// Whether the words end with ".f32.f16.f16.f32" or ".f32.bf16.bf16.f32", and the shape is one of these.
bool is_half_with_f32_sums(const ptx::Instruction& instruction, std::initializer_list<std::string_view> shapes) {
  const auto& words = instruction.words;
  const bool has_shape = std::ranges::any_of(shapes, [&](std::string_view shape) { return instruction.has(shape); });
  if (words.size() < 4 || !has_shape || words.back() != "f32" || instruction.has("satfinite")) return false;
  const std::string_view a = words[words.size() - 3], b = words[words.size() - 2];
  return words[words.size() - 4] == "f32" && a == b && (a == "f16" || a == "bf16");
}

void translate_mma(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync") || !decoder.take("aligned")) decoder.reject(".sync.aligned is expected");
  if (!is_half_with_f32_sums(decoder.instruction(), {"m16n8k16", "m16n8k8"}))
    return translate_mma_of_type(decoder, operation);
  const bool is_k16 = decoder.take("m16n8k16");
  if (!is_k16 && !decoder.take("m16n8k8")) decoder.reject("shape m16n8k16 or m16n8k8 is expected");
  if (!decoder.take("row") || !decoder.take("col")) decoder.reject(".row.col is expected");
  if (decoder.take_type() != Type::f32) decoder.reject("results of f32 are expected");
  const Half type = take_half_types(decoder);
  if (decoder.take_type() != Type::f32) decoder.reject("sums of f32 are expected");
  decoder.finish(4);
  std::vector<Slot> slots;
  append(decoder, slots, 0, Type::f32, 4, true);
  append(decoder, slots, 1, Type::b32, is_k16 ? 4 : 2, false);
  append(decoder, slots, 2, Type::b32, is_k16 ? 2 : 1, false);
  append(decoder, slots, 3, Type::f32, 4, false);
  decoder.keep(operation, std::move(slots));
  if (type == Half::f16)
    operation.execute = is_k16 ? &multiply<Half::f16, 2> : &multiply<Half::f16, 1>;
  else
    operation.execute = is_k16 ? &multiply<Half::bf16, 2> : &multiply<Half::bf16, 1>;
}

struct MatrixDetails {
  AccessDetails access;
  unsigned matrices = 1;
  bool transposes = false;
  bool is_load = true;
};

/// Lane i has the address of row i % 8 of matrix i / 8.
void move_matrices(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const auto& details = *static_cast<const MatrixDetails*>(operation.details);
  const unsigned count = 8 * details.matrices;
  const Mask addressing = count == kWarpSize ? kAllLanes : (Mask{1} << count) - 1;
  Addresses addresses = addresses_of(details.access.address, warp, addressing);
  resolve(operation, warp, addressing, details.access.space, details.is_load ? Access::read : Access::write,
          kMatrixRowBytes, addresses);
  std::byte* row_addresses[kWarpSize];
  for (unsigned i = 0; i < count; ++i) row_addresses[i] = reinterpret_cast<std::byte*>(addresses.lane[i]);
  Row registers[4];
  for (unsigned i = 0; i < details.matrices; ++i) registers[i] = warp.row<std::uint32_t>(operation.slots[i]);
  if (details.is_load)
    load_matrices(std::span<const std::byte* const>(row_addresses, count), details.transposes,
                  std::span<const Row>(registers, details.matrices));
  else
    store_matrices(std::span<const ConstRow>(registers, details.matrices), details.transposes,
                   std::span<std::byte* const>(row_addresses, count));
}

template <bool kLoads>
void translate_matrices(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync") || !decoder.take("aligned") || !decoder.take("m8n8"))
    decoder.reject(".sync.aligned.m8n8 is expected");
  const std::size_t number = decoder.take_one_of({"x1", "x2", "x4"});
  if (number > 2) decoder.reject(".x1, .x2 or .x4 is expected");
  MatrixDetails details{.matrices = 1u << number, .transposes = decoder.take("trans"), .is_load = kLoads};
  details.access = {.space = take_state_space(decoder), .bytes = kMatrixRowBytes};
  if (decoder.take_type() != Type::b16) decoder.reject("type b16 is expected");
  decoder.finish(2);
  details.access.address = decoder.address(decoder.operand(kLoads ? 1 : 0));
  std::vector<Slot> slots;
  append(decoder, slots, kLoads ? 0 : 1, Type::b32, details.matrices, kLoads);
  decoder.keep(operation, std::move(slots));
  note_shared_access(decoder, details.access.space, kMatrixRowBytes);
  operation.details = decoder.keep_details(details);
  operation.execute = &move_matrices;
}

struct WmmaDetails {
  AccessDetails access;
  Slot stride = 0;  ///< elements
  MatrixLayout layout = MatrixLayout::row;
  bool is_load = true;
  bool is_accumulator = false;
  unsigned alignment = 32;
  unsigned registers = 8;
};

/// The addresses of the matrix's 16 lines, checked 16 bytes at a time: the lanes access them together, the same bytes
/// of each line one after another, as ldmatrix does, by which machine code loads fragments from shared memory.
std::array<std::byte*, kWmmaLines> resolve_lines(const Operation& operation, Warp& warp, const WmmaDetails& details) {
  const Addresses base = addresses_of(details.access.address, warp, kAllLanes);
  const std::uint32_t* const stride = warp.row<std::uint32_t>(details.stride);
  for (unsigned lane = 1; lane < kWarpSize; ++lane)
    if (base.lane[lane] != base.lane[0] || stride[lane] != stride[0])
      warp.fail(operation, lane, "the address or the stride of a matrix differs within a warp");
  const unsigned element = details.is_accumulator ? 4 : 2;
  const std::uint64_t stride_bytes = std::uint64_t{stride[0]} * element;
  if (base.lane[0] % details.alignment != 0)
    warp.fail(operation, 0, joined("the address of a matrix is not a multiple of ", details.alignment));
  if (stride_bytes % kWmmaStrideAlignment != 0)
    warp.fail(operation, 0,
              joined("the stride of a matrix is ", stride_bytes, " bytes, which is not a multiple of 16"));
  const unsigned chunks = kWmmaLines * element / 16;  // of a line
  std::array<std::byte*, kWmmaLines> lines;
  for (unsigned first = 0; first < kWmmaLines * chunks; first += kWarpSize) {
    Addresses addresses;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      addresses.lane[lane] =
          base.lane[0] + (first + lane) % kWmmaLines * stride_bytes + (first + lane) / kWmmaLines * 16;
    resolve(operation, warp, kAllLanes, details.access.space, details.is_load ? Access::read : Access::write, 16,
            addresses);
    for (unsigned line = 0; first == 0 && line < kWmmaLines; ++line)
      lines[line] = reinterpret_cast<std::byte*>(addresses.lane[line]);
  }
  return lines;
}

void move_fragment(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const auto& details = *static_cast<const WmmaDetails*>(operation.details);
  const std::array<std::byte*, kWmmaLines> lines = resolve_lines(operation, warp, details);
  std::array<const std::byte*, kWmmaLines> const_lines;
  std::ranges::copy(lines, const_lines.begin());
  const std::array<Row, 8> registers = rows<Row, 8>(warp, operation.slots);
  if (!details.is_load)
    wmma_store(details.layout, rows<ConstRow, 8>(warp, operation.slots), lines);
  else if (details.is_accumulator)
    wmma_load_accumulators(details.layout, const_lines, registers);
  else
    wmma_load(const_lines, std::span<const Row>(registers).first(details.registers));
}

MatrixLayout take_layout(Decoder& decoder) {
  const std::size_t layout = decoder.take_one_of({"row", "col"});
  if (layout > 1) decoder.reject(".row or .col is expected");
  return layout == 0 ? MatrixLayout::row : MatrixLayout::col;
}

/// wmma.load.a d, [p], stride and wmma.store.d [p], d, stride
void translate_move(Decoder& decoder, Operation& operation, bool is_load) {
  const std::size_t matrix = decoder.take_one_of({"a", "b", "c", "d"});
  WmmaDetails details{.layout = take_layout(decoder), .is_load = is_load, .is_accumulator = matrix >= 2};
  details.access = {.space = take_state_space(decoder), .bytes = 16};
  const Type type = decoder.take_type();
  if (matrix > 3 || (matrix == 3) == is_load) decoder.reject("expected .load.a, .load.b, .load.c or .store.d");
  if (details.is_accumulator ? type != Type::f32 : type != Type::f16 && type != Type::bf16)
    decoder.reject(joined("type ", name_of(type), " is not supported here"));
  details.alignment = static_cast<unsigned>(
      details.is_accumulator ? kWmmaAccumulatorAlignment : wmma_alignment(type == Type::f16 ? Half::f16 : Half::bf16));
  details.registers = type == Type::bf16 ? 4 : 8;
  const bool has_stride = decoder.operand_count() == 3;
  decoder.finish(has_stride ? 3 : 2);
  details.access.address = decoder.address(decoder.operand(is_load ? 1 : 0));
  details.stride = has_stride ? decoder.source(2, Type::b32) : decoder.frame().of_constant(kWmmaLines, 4);
  std::vector<Slot> slots;
  append(decoder, slots, is_load ? 0 : 1, details.is_accumulator ? Type::f32 : Type::b32, details.registers, is_load);
  slots.resize(8, decoder.frame().of_sink());
  decoder.keep(operation, std::move(slots));
  note_shared_access(decoder, details.access.space, 16);
  operation.details = decoder.keep_details(details);
  operation.execute = &move_fragment;
}

struct WmmaProduct {
  Half type = Half::f16;
  MatrixLayout layout_a = MatrixLayout::row, layout_b = MatrixLayout::col;
  unsigned registers = 8;  ///< of A and of B
};

void multiply_fragments(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const auto& details = *static_cast<const WmmaProduct*>(operation.details);
  const Slot* const slots = operation.slots;
  const std::array<ConstRow, 8> a = rows<ConstRow, 8>(warp, slots + 16), b = rows<ConstRow, 8>(warp, slots + 24);
  wmma_multiply(details.type, details.layout_a, details.layout_b, std::span<const ConstRow>(a).first(details.registers),
                std::span<const ConstRow>(b).first(details.registers), rows<ConstRow, 8>(warp, slots + 8),
                rows<Row, 8>(warp, slots));
}

/// wmma.mma d, a, b, c: types are those of d and c (A and B are of f16 then), or of d, a, b, c.
void translate_product(Decoder& decoder, Operation& operation) {
  WmmaProduct details;
  details.layout_a = take_layout(decoder);
  details.layout_b = take_layout(decoder);
  if (decoder.take_type() != Type::f32) decoder.reject("results of f32 are expected");
  const Type second = decoder.take_type();
  if (second == Type::bf16) {
    details.type = Half::bf16;
    details.registers = 4;
    if (decoder.take_type() != Type::bf16 || decoder.take_type() != Type::f32)
      decoder.reject("B of bf16 and sums of f32 are expected");
  } else if (second != Type::f32) {
    decoder.reject("sums of f32 are expected");
  }
  decoder.finish(4);
  std::vector<Slot> slots;
  append(decoder, slots, 0, Type::f32, 8, true);
  append(decoder, slots, 3, Type::f32, 8, false);
  append(decoder, slots, 1, Type::b32, details.registers, false);
  slots.resize(24, decoder.frame().of_sink());
  append(decoder, slots, 2, Type::b32, details.registers, false);
  slots.resize(32, decoder.frame().of_sink());
  decoder.keep(operation, std::move(slots));
  operation.details = decoder.keep_details(details);
  operation.execute = &multiply_fragments;
}

/// m16n16k16 of f16 and bf16 with sums of f32.
bool is_known_here(const ptx::Instruction& instruction) {
  if (!instruction.has("m16n16k16")) return false;
  const std::string_view last = instruction.words.back();
  if (instruction.has("load") || instruction.has("store")) {
    const bool is_sum = instruction.has("c") || instruction.has("d");
    return is_sum ? last == "f32" : last == "f16" || last == "bf16";
  }
  const bool named = is_half_with_f32_sums(instruction, {"m16n16k16"});
  const std::string_view before = instruction.words[instruction.words.size() - 2];
  return named || (last == "f32" && before == "f32");
}

void move_matrix(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  Elements elements[8];
  std::memcpy(elements, warp.row<std::uint32_t>(operation.a), sizeof elements);
  transpose(elements);
  std::memcpy(warp.row<std::uint32_t>(operation.d), elements, sizeof elements);
}

/// movmatrix.sync.aligned.m8n8.trans.b16 d, a
void translate_movmatrix(Decoder& decoder, Operation& operation) {
  for (const std::string_view word : {"sync", "aligned", "m8n8", "trans", "b16"})
    if (!decoder.take(word)) decoder.reject(".sync.aligned.m8n8.trans.b16 is expected");
  decoder.read_rows(operation, Type::b32, {Type::b32});
  operation.execute = &move_matrix;
}

void translate_wmma(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync") || !decoder.take("aligned")) decoder.reject(".sync.aligned is expected");
  if (!is_known_here(decoder.instruction())) return translate_wmma_of_type(decoder, operation);
  const std::size_t kind = decoder.take_one_of({"load", "store", "mma"});
  if (!decoder.take("m16n16k16")) decoder.reject("shape m16n16k16 is expected");
  switch (kind) {
    case 0: return translate_move(decoder, operation, true);
    case 1: return translate_move(decoder, operation, false);
    case 2: return translate_product(decoder, operation);
    default: decoder.reject("expected .load, .store or .mma");
  }
}

constexpr Opcode kOpcodes[] = {{"mma", translate_mma},
                               {"ldmatrix", translate_matrices<true>},
                               {"stmatrix", translate_matrices<false>},
                               {"movmatrix", translate_movmatrix},
                               {"wmma", translate_wmma}};

}  // namespace

std::span<const Opcode> tensor_core_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
