// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// Why an instruction cannot be translated.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// Lays out a warp's frame: a row for each register, immediate and special register that the kernel uses.
class FrameLayout {
 public:
  FrameLayout(Program& program);

  Slot of_register(unsigned reg) const { return registers_[reg]; }
  ptx::Type type_of(unsigned reg) const { return program_.kernel->registers[reg]; }
  /// A row of the same value in each lane.
  Slot of_constant(std::uint64_t bits, unsigned width);
  /// A predicate that holds in each lane.
  Slot of_true() const { return true_; }
  /// The predicate of the condition code, which add.cc sets and addc reads.
  Slot of_carry() {
    if (carry_ == 0) carry_ = new_row(0);
    return carry_;
  }
  /// A row that is written and never read.
  Slot of_sink() const { return sink_; }
  /// Null value: the name is not known.
  Slot of_special(std::string_view name, unsigned width);
  /// The address of a parameter or variable, in its state space.
  Slot of_symbol(std::string_view name, std::int64_t offset, unsigned width);
  /// The address of a parameter of functions or calls, in the host's memory.
  Slot of_call_parameter(std::size_t index, std::int64_t offset, unsigned width);

  /// The function whose code is translated from now on; null for the kernel itself.
  void begin_code_of(const ptx::Function* function) { function_ = function; }
  const ptx::Function* function() const { return function_; }

  Program& program() { return program_; }

 private:
  Slot new_row(unsigned width);
  Slot add_special(const SpecialRow& row);
  Slot of_local(std::uint64_t offset, unsigned width);
  void lay_out_stack();

  Program& program_;
  const ptx::Function* function_ = nullptr;
  Slot end_ = 0;
  std::vector<Slot> registers_;
  Slot true_ = 0;
  Slot sink_ = 0;
  Slot carry_ = 0;
  std::map<std::pair<std::uint64_t, unsigned>, Slot> constants_;
  std::map<std::tuple<SpecialRow::Value, std::uint64_t, unsigned>, Slot> specials_;
};

/// Reads an instruction for its translator, which takes the words that it knows, then says finish(): a word that
/// nobody took is an error, so no modifier is ignored.
///
/// Errors    Unsupported, from every function.
class Decoder {
 public:
  Decoder(FrameLayout& frame, const ptx::Instruction& instruction);

  /// Whether the instruction has this word; it is taken then.
  bool take(std::string_view word);
  /// Its first word that is one of `words`, as an index of these; words.size() if it has none.
  std::size_t take_one_of(std::initializer_list<std::string_view> words);
  /// The first type that was not taken yet; none if there is no other.
  ptx::Type take_type();
  /// The first word that was not taken yet, as it is; empty if there is no other. It is not taken.
  std::string_view next() const;
  /// All words must be taken, and there must be this number of operands.
  void finish(std::size_t operands) const;
  /// Finishes an instruction "d, a", "d, a, b" or "d, a, b, c" whose operands have these types, and fills in the rows.
  void read_rows(Operation& operation, ptx::Type d, std::initializer_list<ptx::Type> sources);

  std::size_t operand_count() const { return instruction_.operands.size(); }
  const ptx::Operand& operand(std::size_t index) const;

  /// The row of an operand that is read as `type`; a register must have the type's width.
  Slot source(const ptx::Operand& operand, ptx::Type type);
  Slot source(std::size_t index, ptx::Type type) { return source(operand(index), type); }
  /// A predicate that is read, perhaps negated: its slot, and all lanes if it is.
  struct Predicate {
    Slot slot = 0;
    Mask flip = 0;
  };
  Predicate predicate(const ptx::Operand& operand) {
    ptx::Operand plain = operand;
    plain.negated = false;
    return {source(plain, ptx::Type::pred), operand.negated ? kAllLanes : 0};
  }
  /// The row of a register that is written as `type`.
  Slot destination(const ptx::Operand& operand, ptx::Type type);
  Slot destination(std::size_t index, ptx::Type type) { return destination(operand(index), type); }
  /// A register that may be wider than the instruction's type, as ld, st and cvt allow: its slot and width in bytes.
  struct Wide {
    Slot slot = 0;
    unsigned width = 0;
  };
  Wide wide_source(const ptx::Operand& operand, ptx::Type type);
  Wide wide_destination(const ptx::Operand& operand, ptx::Type type);
  /// Rows of a vector's elements, or of the one operand.
  std::vector<Slot> sources(const ptx::Operand& operand, ptx::Type type) {
    if (operand.kind != ptx::Operand::Kind::vector) return {source(operand, type)};
    std::vector<Slot> slots;
    for (const ptx::Operand& part : operand.parts) slots.push_back(source(part, type));
    return slots;
  }
  std::vector<Slot> destinations(const ptx::Operand& operand, ptx::Type type) {
    if (operand.kind != ptx::Operand::Kind::vector) return {destination(operand, type)};
    std::vector<Slot> slots;
    for (const ptx::Operand& part : operand.parts) slots.push_back(destination(part, type));
    return slots;
  }

  /// d|e: both of a pair; of a single operand, it and a sink.
  std::pair<const ptx::Operand*, const ptx::Operand*> results(std::size_t index) const;

  /// [base + displacement]
  struct Address {
    Slot base = 0;
    unsigned width = 8;  ///< bytes of the base
    std::uint64_t displacement = 0;
  };
  Address address(const ptx::Operand& operand);
  /// An immediate.
  std::uint64_t constant(const ptx::Operand& operand) const {
    if (operand.kind != ptx::Operand::Kind::immediate) reject("the operand is not a constant");
    return operand.bits;
  }

  FrameLayout& frame() { return frame_; }
  const ptx::Instruction& instruction() const { return instruction_; }
  /// Keeps rows for Operation::slots.
  void keep(Operation& operation, std::vector<Slot> slots) {
    operation.slot_count = static_cast<std::uint32_t>(slots.size());
    operation.slots = frame_.program().slot_lists.emplace_back(std::move(slots)).data();
  }
  /// Keeps a handler's details for Operation::details.
  template <class T>
  const T* keep_details(T details) {
    auto kept = std::make_shared<const T>(std::move(details));
    const T* raw = kept.get();
    frame_.program().details.push_back(std::move(kept));
    return raw;
  }

  [[noreturn]] void reject(const std::string& why) const { throw Unsupported(why); }

 private:
  FrameLayout& frame_;
  const ptx::Instruction& instruction_;
  std::vector<bool> taken_;
};

}  // namespace gradring::simulated_gpu
