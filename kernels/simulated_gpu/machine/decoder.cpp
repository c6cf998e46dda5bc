// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/decoder.h"

#include <algorithm>
#include <bit>

namespace gradring::simulated_gpu {
namespace {

using ptx::Operand;
using ptx::Type;

/// An immediate as the bits of a type. A literal that was written as f64 is converted if the instruction computes in
/// f32.
std::uint64_t bits_as(const Operand& operand, Type type) {
  if (type == Type::f32 && operand.is_double)
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
  return operand.bits;
}

}  // namespace

Decoder::Decoder(FrameLayout& frame, const ptx::Instruction& instruction)
    : frame_(frame), instruction_(instruction), taken_(instruction.words.size()) {
  if (!taken_.empty()) taken_[0] = true;
}

bool Decoder::take(std::string_view word) {
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (!taken_[i] && instruction_.words[i] == word) return taken_[i] = true;
  return false;
}

std::size_t Decoder::take_one_of(std::initializer_list<std::string_view> words) {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const auto* const found = taken_[i] ? words.end() : std::ranges::find(words, instruction_.words[i]);
    if (found == words.end()) continue;
    taken_[i] = true;
    return static_cast<std::size_t>(found - words.begin());
  }
  return words.size();
}

Type Decoder::take_type() {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const Type type = taken_[i] ? Type::none : ptx::type_named(instruction_.words[i]);
    if (type == Type::none) continue;
    taken_[i] = true;
    return type;
  }
  return Type::none;
}

std::string_view Decoder::next() const {
  const auto first = std::ranges::find(taken_, false);
  return first == taken_.end() ? "" : instruction_.words[static_cast<std::size_t>(first - taken_.begin())];
}

void Decoder::finish(std::size_t operands) const {
  if (!next().empty()) reject(joined("modifier .", next(), " is not supported here"));
  if (operands != operand_count()) reject(joined(operand_count(), " operands; expected ", operands));
}

void Decoder::read_rows(Operation& operation, Type d, std::initializer_list<Type> sources) {
  finish(1 + sources.size());
  operation.d = destination(0, d);
  Slot* const rows[] = {&operation.a, &operation.b, &operation.c};
  for (std::size_t i = 0; i < sources.size(); ++i) *rows[i] = source(i + 1, sources.begin()[i]);
}

const Operand& Decoder::operand(std::size_t index) const {
  if (index >= operand_count()) reject(joined("operand ", index + 1, " is missing"));
  return instruction_.operands[index];
}

Slot Decoder::source(const Operand& operand, Type type) {
  const unsigned width = static_cast<unsigned>(bytes_of(type));
  if (operand.negated) reject("a predicate cannot be negated here");
  switch (operand.kind) {
    case Operand::Kind::reg:
      if ((frame_.type_of(operand.reg) == Type::pred) != (type == Type::pred) ||
          bytes_of(frame_.type_of(operand.reg)) != width)
        reject(joined("a register of type ", name_of(frame_.type_of(operand.reg)), " is read as ", name_of(type)));
      return frame_.of_register(operand.reg);
    case Operand::Kind::immediate: return frame_.of_constant(bits_as(operand, type), width);
    case Operand::Kind::special: return frame_.of_special(operand.name, width);
    case Operand::Kind::symbol: return frame_.of_symbol(operand.name, operand.offset, width);
    case Operand::Kind::parameter: return frame_.of_call_parameter(operand.target, operand.offset, width);
    case Operand::Kind::function:
      return frame_.of_constant(frame_.program().kernel->functions[operand.target].address, width);
    default: reject("an operand is not a register, a constant or a symbol");
  }
}

Slot Decoder::destination(const Operand& operand, Type type) {
  if (operand.kind == Operand::Kind::sink) return frame_.of_sink();
  if (operand.kind != Operand::Kind::reg) reject("the destination is not a register");
  return source(operand, type);
}

Decoder::Wide Decoder::wide_source(const Operand& operand, Type type) {
  if (operand.kind != Operand::Kind::reg) {
    const unsigned width = std::max(2u, static_cast<unsigned>(bytes_of(type)));
    const Type register_type = width == 2 ? Type::b16 : type;
    return {source(operand, register_type), width};
  }
  const Type held = frame_.type_of(operand.reg);
  if (held == Type::pred || bytes_of(held) < bytes_of(type))
    reject(joined("a register of type ", name_of(held), " is too narrow for ", name_of(type)));
  return {frame_.of_register(operand.reg), static_cast<unsigned>(bytes_of(held))};
}

Decoder::Wide Decoder::wide_destination(const Operand& operand, Type type) {
  if (operand.kind == Operand::Kind::sink) return {frame_.of_sink(), 8};
  if (operand.kind != Operand::Kind::reg) reject("the destination is not a register");
  return wide_source(operand, type);
}

std::pair<const Operand*, const Operand*> Decoder::results(std::size_t index) const {
  static const Operand kSink;
  const Operand& both = operand(index);
  if (both.kind != Operand::Kind::pair) return {&both, &kSink};
  return {&both.parts[0], &both.parts[1]};
}

Decoder::Address Decoder::address(const Operand& operand) {
  if (operand.kind != Operand::Kind::address || operand.parts.empty())
    reject("the operand is not an address in brackets");
  const Operand& base = operand.parts.front();
  const auto displacement = static_cast<std::uint64_t>(operand.offset);
  if (base.kind == Operand::Kind::reg) {
    const Wide reg = wide_source(base, Type::b32);
    return {reg.slot, reg.width, displacement};
  }
  return {source(base, Type::b64), 8, displacement};
}

}  // namespace gradring::simulated_gpu
