// SPDX-License-Identifier: Apache-2.0
// mma and wmma with sums of f16, tf32, f64, s8, u8, s4, u4, e4m3, e5m2; movmatrix.

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/units/mma_types.h"
#include "kernels/simulated_gpu/units/wmma_types.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

constexpr std::pair<std::string_view, Element> kElements[] = {
    {"f16", Element::f16},   {"bf16", Element::bf16}, {"tf32", Element::tf32}, {"e4m3", Element::e4m3},
    {"e5m2", Element::e5m2}, {"s8", Element::s8},     {"u8", Element::u8},     {"s4", Element::s4},
    {"u4", Element::u4},     {"f64", Element::f64}};

constexpr std::pair<std::string_view, SumType> kSums[] = {
    {"f16", SumType::f16}, {"f32", SumType::f32}, {"f64", SumType::f64}, {"s32", SumType::s32}};

/// Takes the next word, if it is one of the table.
template <class T, std::size_t kRows>
std::optional<T> take_next(Decoder& decoder, const std::pair<std::string_view, T> (&table)[kRows]) {
  for (const auto& [word, meaning] : table)
    if (decoder.next() == word) {
      decoder.take(word);
      return meaning;
    }
  return std::nullopt;
}

template <class T>
T expect(Decoder& decoder, std::optional<T> found) {
  if (!found) decoder.reject(joined("type ", decoder.next(), " is not supported here"));
  return *found;
}

bool is_one_of(const MmaShape& shape, std::initializer_list<std::pair<int, int>> rows_and_k) {
  return std::ranges::find(rows_and_k, std::pair(shape.rows, shape.k)) != rows_and_k.end();
}

/// Table of shapes and types of mma: 9.7.14.5 of the PTX ISA.
bool exists(const MmaShape& shape) {
  const bool sums_integers = shape.sum == SumType::s32;
  if (is_integer(shape.a) != sums_integers || is_integer(shape.b) != sums_integers) return false;
  if (bits_of(shape.a) != bits_of(shape.b)) return false;
  if (bits_of(shape.a) > 8 && shape.a != shape.b) return false;
  switch (shape.a) {
    case Element::f16:
      return (shape.sum == SumType::f16 || shape.sum == SumType::f32) && is_one_of(shape, {{16, 8}, {16, 16}});
    case Element::bf16: return shape.sum == SumType::f32 && is_one_of(shape, {{16, 8}, {16, 16}});
    case Element::tf32: return shape.sum == SumType::f32 && is_one_of(shape, {{16, 4}, {16, 8}});
    case Element::f64: return shape.sum == SumType::f64 && is_one_of(shape, {{8, 4}, {16, 4}, {16, 8}, {16, 16}});
    case Element::e4m3:
    case Element::e5m2:
      return (shape.sum == SumType::f16 || shape.sum == SumType::f32) && is_one_of(shape, {{16, 16}, {16, 32}});
    case Element::s8:
    case Element::u8: return is_one_of(shape, {{8, 16}, {16, 16}, {16, 32}});
    default: return is_one_of(shape, {{8, 32}, {16, 32}, {16, 64}});
  }
}

template <class R, class T>
std::vector<R> rows_of(Warp& warp, const Slot* slots, int count) {
  std::vector<R> rows;
  for (int i = 0; i < count; ++i) rows.push_back(warp.row<T>(slots[i]));
  return rows;
}

/// Operation::slots: d, a, b, c.
void multiply(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const auto& shape = *static_cast<const MmaShape*>(operation.details);
  const int sums = registers_of_sum(shape), a = registers_of_a(shape), b = registers_of_b(shape);
  const Slot* const slots = operation.slots;
  if (shape.sum == SumType::f64)
    return mma_f64(shape.rows, shape.k, rows_of<const double*, double>(warp, slots + sums, a),
                   rows_of<const double*, double>(warp, slots + sums + a, b),
                   rows_of<const double*, double>(warp, slots + sums + a + b, sums),
                   rows_of<double*, double>(warp, slots, sums));
  mma_of_types(shape, rows_of<ConstRow, std::uint32_t>(warp, slots + sums, a),
               rows_of<ConstRow, std::uint32_t>(warp, slots + sums + a, b),
               rows_of<ConstRow, std::uint32_t>(warp, slots + sums + a + b, sums),
               rows_of<Row, std::uint32_t>(warp, slots, sums));
}

void append(Decoder& decoder, std::vector<Slot>& slots, std::size_t operand, Type type, int count, bool is_result) {
  const std::vector<Slot> own = is_result ? decoder.destinations(decoder.operand(operand), type)
                                          : decoder.sources(decoder.operand(operand), type);
  if (own.size() != static_cast<std::size_t>(count))
    decoder.reject(joined("operand ", operand + 1, " has ", own.size(), " registers; expected ", count));
  slots.insert(slots.end(), own.begin(), own.end());
}

struct WmmaMove {
  WmmaShape shape;
  WmmaMatrix matrix = WmmaMatrix::a;
  MatrixLayout layout = MatrixLayout::row;
  AccessDetails access;
  Slot stride = 0;  ///< elements
  bool is_load = true;
};

/// The addresses of a matrix's lines, after all checks: 16 bytes at a time, or a line if it is shorter.
std::vector<std::byte*> resolve_lines(const Operation& operation, Warp& warp, const WmmaMove& move,
                                      const WmmaLines& lines) {
  const Addresses base = addresses_of(move.access.address, warp, kAllLanes);
  const std::uint32_t* const stride = warp.row<std::uint32_t>(move.stride);
  for (unsigned lane = 1; lane < kWarpSize; ++lane)
    if (base.lane[lane] != base.lane[0] || stride[lane] != stride[0])
      warp.fail(operation, lane, "the address or the stride of a matrix differs within a warp");
  const std::uint64_t stride_bytes = std::uint64_t{stride[0]} * static_cast<unsigned>(lines.bits) / 8;
  const auto bytes = std::min<unsigned>(16, static_cast<unsigned>(lines.bytes()));
  const auto count = static_cast<unsigned>(lines.count);
  const unsigned pieces = count * static_cast<unsigned>(lines.bytes()) / bytes;
  std::vector<std::byte*> found(count);
  for (unsigned first = 0; first < pieces; first += kWarpSize) {
    const unsigned here = std::min(kWarpSize, pieces - first);
    Addresses addresses;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const unsigned piece = first + std::min(lane, here - 1);
      addresses.lane[lane] = base.lane[0] + piece % count * stride_bytes + piece / count * bytes;
    }
    const Mask lanes = here == kWarpSize ? kAllLanes : (Mask{1} << here) - 1;
    resolve(operation, warp, lanes, move.access.space, move.is_load ? Access::read : Access::write, bytes, addresses);
    for (unsigned lane = 0; lane < here && first + lane < count; ++lane)
      found[first + lane] = reinterpret_cast<std::byte*>(addresses.lane[lane]);
  }
  return found;
}

void move_matrix(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const auto& move = *static_cast<const WmmaMove*>(operation.details);
  const WmmaLines shape = lines_of(move.shape, move.matrix, move.layout);
  const std::vector<std::byte*> lines = resolve_lines(operation, warp, move, shape);
  const std::vector<const std::byte*> sources(lines.begin(), lines.end());
  const auto rows = rows_of<WideRow, std::byte>(warp, operation.slots, static_cast<int>(operation.slot_count));
  if (move.matrix != WmmaMatrix::sum)
    load_fragment(shape, sources, move.shape.sum == SumType::f64 ? 8 : 4, rows);
  else if (move.is_load)
    load_sums(move.shape, move.layout, sources, rows);
  else
    store_sums(move.shape, move.layout, std::vector<ConstWideRow>(rows.begin(), rows.end()), lines);
}

struct WmmaProductDetails {
  WmmaShape shape;
  MatrixLayout layout_a = MatrixLayout::row, layout_b = MatrixLayout::col;
};

void multiply_matrices(const Operation& operation, Warp& warp, Mask active) {
  if (!is_whole_warp(operation, warp, active)) return;
  const auto& details = *static_cast<const WmmaProductDetails*>(operation.details);
  const int sums = registers_of(details.shape, WmmaMatrix::sum);
  const int a = registers_of(details.shape, WmmaMatrix::a), b = registers_of(details.shape, WmmaMatrix::b);
  const Slot* const slots = operation.slots;
  wmma_of_types(details.shape, details.layout_a, details.layout_b,
                rows_of<ConstWideRow, std::byte>(warp, slots + sums, a),
                rows_of<ConstWideRow, std::byte>(warp, slots + sums + a, b),
                rows_of<ConstWideRow, std::byte>(warp, slots + sums + a + b, sums),
                rows_of<WideRow, std::byte>(warp, slots, sums));
}

MatrixLayout take_layout(Decoder& decoder) {
  const std::size_t layout = decoder.take_one_of({"row", "col"});
  if (layout > 1) decoder.reject(".row or .col is expected");
  return layout == 0 ? MatrixLayout::row : MatrixLayout::col;
}

WmmaShape take_wmma_shape(Decoder& decoder) {
  constexpr WmmaShape kShapes[] = {{.m = 16, .n = 16, .k = 16}, {.m = 32, .n = 8, .k = 16}, {.m = 8, .n = 32, .k = 16},
                                   {.m = 16, .n = 16, .k = 8},  {.m = 8, .n = 8, .k = 4},   {.m = 8, .n = 8, .k = 32}};
  const std::size_t shape = decoder.take_one_of({"m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8", "m8n8k4", "m8n8k32"});
  if (shape > 5) decoder.reject("the shape is not supported");
  return kShapes[shape];
}

/// The sums that go with operands of a type, if these alone are named.
SumType sum_for(Element element) {
  return is_integer(element) ? SumType::s32 : element == Element::f64 ? SumType::f64 : SumType::f32;
}

Type register_type(const WmmaShape& shape) { return shape.sum == SumType::f64 ? Type::f64 : Type::b32; }

void check_wmma(Decoder& decoder, const WmmaShape& shape) {
  const int expected = shape.element == Element::f64    ? 4
                       : shape.element == Element::tf32 ? 8
                       : bits_of(shape.element) == 4    ? 32
                                                        : 16;
  if (shape.k != expected) decoder.reject("wmma has no such shape for this type");
}

/// wmma.load.a d, [p], stride and wmma.store.d [p], d, stride
void translate_move(Decoder& decoder, Operation& operation, bool is_load) {
  WmmaMove move{.is_load = is_load};
  const std::size_t matrix = decoder.take_one_of({"a", "b", "c", "d"});
  if (matrix > 3 || (matrix == 3) == is_load) decoder.reject("expected .load.a, .load.b, .load.c or .store.d");
  move.matrix = matrix == 0 ? WmmaMatrix::a : matrix == 1 ? WmmaMatrix::b : WmmaMatrix::sum;
  move.layout = take_layout(decoder);
  move.shape = take_wmma_shape(decoder);
  move.access = {.space = take_state_space(decoder), .bytes = 16};
  if (move.matrix == WmmaMatrix::sum) {
    move.shape.sum = expect(decoder, take_next(decoder, kSums));
    if (move.shape.sum == SumType::f64) move.shape.element = Element::f64;
  } else {
    move.shape.element = expect(decoder, take_next(decoder, kElements));
    move.shape.sum = sum_for(move.shape.element);
    check_wmma(decoder, move.shape);
  }
  const bool has_stride = decoder.operand_count() == 3;
  decoder.finish(has_stride ? 3 : 2);
  move.access.address = decoder.address(decoder.operand(is_load ? 1 : 0));
  const WmmaLines lines = lines_of(move.shape, move.matrix, move.layout);
  move.stride = has_stride ? decoder.source(2, Type::b32)
                           : decoder.frame().of_constant(static_cast<std::uint64_t>(lines.elements), 4);
  std::vector<Slot> slots;
  append(decoder, slots, is_load ? 0 : 1, register_type(move.shape), registers_of(move.shape, move.matrix), is_load);
  decoder.keep(operation, std::move(slots));
  note_shared_access(decoder, move.access.space, std::min(16u, static_cast<unsigned>(lines.bytes())));
  operation.details = decoder.keep_details(move);
  operation.execute = &move_matrix;
}

/// wmma.mma d, a, b, c: types are those of d, a, b, c; with f16 operands, of d and c alone.
void translate_product(Decoder& decoder, Operation& operation) {
  WmmaProductDetails details{.layout_a = take_layout(decoder), .layout_b = take_layout(decoder)};
  details.shape = take_wmma_shape(decoder);
  details.shape.saturates = decoder.take("satfinite");
  decoder.take("rn");
  details.shape.sum = expect(decoder, take_next(decoder, kSums));
  std::vector<std::string_view> types;
  for (; !decoder.next().empty(); decoder.take(types.back())) types.push_back(decoder.next());
  if (types.size() == 3) {
    const auto* const element = std::ranges::find(kElements, types[0], &std::pair<std::string_view, Element>::first);
    if (element == std::end(kElements) || types[1] != types[0])
      decoder.reject("A and B have types that are not supported");
    details.shape.element = element->second;
  } else if (types.size() != 1) {
    decoder.reject("the types are not supported");
  }
  const auto* const sum = std::ranges::find(kSums, types.back(), &std::pair<std::string_view, SumType>::first);
  if (sum == std::end(kSums) || sum->second != details.shape.sum)
    decoder.reject("sums and results have different types");
  if (details.shape.element != Element::f16 && sum_for(details.shape.element) != details.shape.sum)
    decoder.reject("wmma has no such types");
  check_wmma(decoder, details.shape);
  decoder.finish(4);
  const Type type = register_type(details.shape);
  const int sums = registers_of(details.shape, WmmaMatrix::sum);
  std::vector<Slot> slots;
  append(decoder, slots, 0, type, sums, true);
  append(decoder, slots, 1, type, registers_of(details.shape, WmmaMatrix::a), false);
  append(decoder, slots, 2, type, registers_of(details.shape, WmmaMatrix::b), false);
  append(decoder, slots, 3, type, sums, false);
  decoder.keep(operation, std::move(slots));
  operation.details = decoder.keep_details(details);
  operation.execute = &multiply_matrices;
}

}  // namespace

void translate_mma_of_type(Decoder& decoder, Operation& operation) {
  constexpr std::pair<std::string_view, std::pair<int, int>> kShapes[] = {
      {"m8n8k4", {8, 4}},   {"m8n8k16", {8, 16}},   {"m8n8k32", {8, 32}},   {"m16n8k4", {16, 4}},
      {"m16n8k8", {16, 8}}, {"m16n8k16", {16, 16}}, {"m16n8k32", {16, 32}}, {"m16n8k64", {16, 64}},
  };
  if (decoder.next().starts_with("sp")) decoder.reject("products with sparse matrices (mma.sp) are not supported");
  const auto rows_and_k = take_next(decoder, kShapes);
  if (!rows_and_k) decoder.reject(joined("shape ", decoder.next(), " is not supported"));
  if (!decoder.take("row") || !decoder.take("col")) decoder.reject(".row.col is expected");
  MmaShape shape{.rows = rows_and_k->first, .k = rows_and_k->second, .saturates = decoder.take("satfinite")};
  decoder.take("rn");
  shape.sum = expect(decoder, take_next(decoder, kSums));
  shape.a = expect(decoder, take_next(decoder, kElements));
  shape.b = expect(decoder, take_next(decoder, kElements));
  if (expect(decoder, take_next(decoder, kSums)) != shape.sum) decoder.reject("sums and results have different types");
  if (!exists(shape)) decoder.reject("mma has no such shape for these types");
  decoder.finish(4);
  const Type operands = shape.a == Element::f64 ? Type::f64 : Type::b32;
  std::vector<Slot> slots;
  append(decoder, slots, 0, operands, registers_of_sum(shape), true);
  append(decoder, slots, 1, operands, registers_of_a(shape), false);
  append(decoder, slots, 2, operands, registers_of_b(shape), false);
  append(decoder, slots, 3, operands, registers_of_sum(shape), false);
  decoder.keep(operation, std::move(slots));
  operation.details = decoder.keep_details(shape);
  operation.execute = &multiply;
}

void translate_wmma_of_type(Decoder& decoder, Operation& operation) {
  switch (decoder.take_one_of({"load", "store", "mma"})) {
    case 0: return translate_move(decoder, operation, true);
    case 1: return translate_move(decoder, operation, false);
    case 2: return translate_product(decoder, operation);
    default: decoder.reject("expected .load, .store or .mma");
  }
}

}  // namespace gradring::simulated_gpu
