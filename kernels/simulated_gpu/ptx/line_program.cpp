// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/machine_instructions.h"

namespace gradring::ptx {
namespace {

/// Opcodes of DWARF that change what is read here.
enum Standard : std::uint8_t { kExtended, kCopy, kAdvanceAddress, kAdvanceLine, kAddConstant = 8, kFixedAdvance };
enum Extended : std::uint8_t { kEndSequence = 1, kSetAddress };

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::size_t begin, std::size_t end) : bytes_(bytes), at_(begin), end_(end) {
    check<PtxError>(begin <= end && end <= bytes.size(), "a line table ends behind its section");
  }

  std::size_t at() const { return at_; }
  bool is_at_end() const { return at_ == end_; }
  void skip(std::size_t count) {
    check<PtxError>(count <= end_ - at_, "a line table ends within an instruction");
    at_ += count;
  }
  template <class Value>
  Value take() {
    const std::size_t from = at_;
    skip(sizeof(Value));
    Value made;
    std::memcpy(&made, bytes_.data() + from, sizeof made);
    return made;
  }
  /// LEB128: seven bits a byte, the lowest first.
  std::uint64_t take_unsigned() { return take_leb128(false); }
  std::int64_t take_signed() { return static_cast<std::int64_t>(take_leb128(true)); }

 private:
  std::uint64_t take_leb128(bool is_signed) {
    constexpr unsigned kBits = 64;
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < kBits) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && (byte & 0x40) != 0 && shift + 7 < kBits) value |= ~std::uint64_t{0} << (shift + 7);
      return value;
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_, end_;
};

/// The head of a unit, as far as it is needed here.
struct Head {
  unsigned instruction_bytes = 0;
  int line_base = 0;
  unsigned line_range = 0;
  std::vector<std::uint8_t> operands;  ///< of the standard opcodes, from 1
};

/// Reads up to the begin of the program.
Head read_head(Reader& unit, unsigned version) {
  Head head;
  const auto length = unit.take<std::uint32_t>();
  const std::size_t program = unit.at() + length;
  head.instruction_bytes = unit.take<std::uint8_t>();
  if (version == 4) unit.skip(1);             // operations of an instruction
  unit.skip(1);                               // default_is_stmt
  head.line_base = unit.take<std::int8_t>();  // NOLINT(bugprone-signed-char-misuse): a number
  head.line_range = unit.take<std::uint8_t>();
  const auto first_special = unit.take<std::uint8_t>();
  check<PtxError>(head.line_range > 0 && first_special > 0, "the head of a line table is damaged");
  for (unsigned i = 1; i < first_special; ++i) head.operands.push_back(unit.take<std::uint8_t>());
  check<PtxError>(program >= unit.at(), "the head of a line table is damaged");
  unit.skip(program - unit.at());  // names of folders and files
  return head;
}

class Program {
 public:
  Program(Head head, std::vector<LineRow>& rows) : head_(std::move(head)), rows_(rows) {}

  void step(Reader& unit) {
    const auto opcode = unit.take<std::uint8_t>();
    if (opcode > head_.operands.size()) {
      const unsigned special = opcode - static_cast<unsigned>(head_.operands.size()) - 1;
      address_ += special / head_.line_range * head_.instruction_bytes;
      line_ += head_.line_base + static_cast<int>(special % head_.line_range);
      return add(line_);
    }
    switch (opcode) {
      case kExtended: return extended(unit);
      case kCopy: return add(line_);
      case kAdvanceAddress: address_ += unit.take_unsigned() * head_.instruction_bytes; return;
      case kAdvanceLine: line_ += unit.take_signed(); return;
      case kAddConstant:
        address_ += (255 - head_.operands.size() - 1) / head_.line_range * head_.instruction_bytes;
        return;
      case kFixedAdvance: address_ += unit.take<std::uint16_t>(); return;
      default:
        for (unsigned i = 0; i < head_.operands[opcode - 1u]; ++i) unit.take_unsigned();
    }
  }

 private:
  void extended(Reader& unit) {
    const std::uint64_t length = unit.take_unsigned();
    check<PtxError>(length > 0, "an instruction of a line table is empty");
    const auto opcode = unit.take<std::uint8_t>();
    if (opcode == kSetAddress && length == 1 + sizeof address_) {
      sequence_ = unit.at();
      address_ = unit.take<std::uint64_t>();
      return;
    }
    unit.skip(length - 1);
    if (opcode != kEndSequence) return;
    add(0);
    address_ = 0;
    line_ = 1;
  }
  void add(std::int64_t line) { rows_.push_back({sequence_, address_, static_cast<unsigned>(line)}); }

  Head head_;
  std::vector<LineRow>& rows_;
  std::size_t sequence_ = 0;
  std::uint64_t address_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::vector<LineRow> read_line_program(std::span<const std::byte> section) {
  std::vector<LineRow> rows;
  Reader whole(section, 0, section.size());
  while (!whole.is_at_end()) {
    const auto length = whole.take<std::uint32_t>();
    Reader unit(section, whole.at(), whole.at() + length);
    whole.skip(length);
    const auto version = unit.take<std::uint16_t>();
    check<PtxError>(version >= 2 && version <= 4, joined("a line table has version ", version, ", expected 2 to 4"));
    Program program(read_head(unit, version), rows);
    while (!unit.is_at_end()) program.step(unit);
  }
  return rows;
}

}  // namespace gradring::ptx
