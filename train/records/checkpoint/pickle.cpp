// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <utility>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostValues = 262'144;
constexpr std::size_t kMostMarks = 1'024;

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& found) {
  throw CheckpointError(path, found, "save a state_dict, with tensors only: torch.save(model.state_dict(), ...)");
}

/// "INST (0x69)"
std::string opcode_name(std::uint8_t opcode) {
  // Opcodes that pickles of other objects may contain.
  // clang-format off
  constexpr std::pair<std::uint8_t, std::string_view> kOthers[] = {
      {'0', "POP"}, {'1', "POP_MARK"}, {'2', "DUP"}, {'F', "FLOAT"}, {'I', "INT"}, {'L', "LONG"}, {'P', "PERSID"},
      {'S', "STRING"}, {'V', "UNICODE"}, {'d', "DICT"}, {'l', "LIST"}, {'g', "GET"}, {'p', "PUT"}, {'i', "INST"},
      {'o', "OBJ"}, {0x81, "NEWOBJ"}, {0x82, "EXT1"}, {0x83, "EXT2"}, {0x84, "EXT4"}, {0x8b, "LONG4"},
      {0x92, "NEWOBJ_EX"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"}};
  // clang-format on
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "0x%02x", opcode);
  for (const auto& [code, name] : kOthers)
    if (code == opcode) return std::string(name) + " (" + hex.data() + ")";
  return hex.data();
}

/// Interprets a pickle, which is a program for a machine with a stack of values, marks on it, and a memo. Runs once.
class PickleMachine {
 public:
  PickleMachine(std::string_view program, const std::filesystem::path& path) : rest_(program), path_(path) {}

  Pickle run() {
    while (step()) {
    }
    return std::move(pickle_);
  }

  /// What follows the pickle.
  std::string_view rest() const { return rest_; }

 private:
  [[noreturn]] void refuse(const std::string& found) const { train::refuse(path_, found); }
  [[noreturn]] void refuse_invalid(const std::string& found) const { refuse("has an invalid pickle: " + found); }

  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) refuse("has a truncated pickle");
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view take_line() {
    const std::string_view line = take(std::min(rest_.find('\n'), rest_.size()));
    take(1);
    return line;
  }

  /// Little-endian, of up to 8 bytes.
  std::uint64_t take_number(std::size_t bytes) {
    std::string padded(take(bytes));
    padded.resize(8, '\0');
    return get_little_endian<std::uint64_t>(padded, 0);
  }

  /// Two's complement of up to 8 bytes; no bytes mean 0.
  std::int64_t take_signed(std::size_t bytes) {
    std::string padded(take(bytes));
    const bool negative = !padded.empty() && (static_cast<unsigned char>(padded.back()) & 0x80);
    padded.resize(8, negative ? '\xff' : '\0');
    return static_cast<std::int64_t>(get_little_endian<std::uint64_t>(padded, 0));
  }

  /// Big-endian, unlike all else.
  double take_real() {
    std::string bytes(take(sizeof(double)));
    std::ranges::reverse(bytes);
    return std::bit_cast<double>(get_little_endian<std::uint64_t>(bytes, 0));
  }

  /// Executes one opcode; returns false after the last.
  bool step() {
    const auto code = static_cast<std::uint8_t>(take(1).front());
    const auto opcode = static_cast<PickleOpcode>(code);
    if (opcode == PickleOpcode::stop) {
      pickle_.root = pop();
      if (!stack_.empty() || !marks_.empty()) refuse("has a pickle that continues after its end");
      return false;
    }
    const bool known = push_constant(opcode) || build_container(opcode) || use_memo(opcode) || call(opcode);
    if (!known) refuse("has the opcode " + opcode_name(code) + " in its pickle, which no state_dict needs");
    return true;
  }

  bool push_constant(PickleOpcode opcode) {
    const auto integer = [this](std::int64_t number) { push({.kind = Kind::integer, .number = number}); };
    const auto text = [this](std::size_t bytes) { push({.kind = Kind::text, .text = std::string(take(bytes))}); };
    switch (opcode) {
      case PickleOpcode::none: push({.kind = Kind::none}); return true;
      case PickleOpcode::new_true: push({.kind = Kind::boolean, .number = 1}); return true;
      case PickleOpcode::new_false: push({.kind = Kind::boolean}); return true;
      case PickleOpcode::int1: integer(static_cast<std::int64_t>(take_number(1))); return true;
      case PickleOpcode::int2: integer(static_cast<std::int64_t>(take_number(2))); return true;
      case PickleOpcode::int4: integer(take_signed(4)); return true;
      case PickleOpcode::long1:
        if (const std::size_t bytes = take_number(1); bytes <= sizeof(std::int64_t))
          integer(take_signed(bytes));
        else
          push_other("an integer of more than 64 bits", bytes);
        return true;
      case PickleOpcode::real: push({.kind = Kind::real, .real = take_real()}); return true;
      case PickleOpcode::string1:  // Python 2's str
      case PickleOpcode::text1: text(take_number(1)); return true;
      case PickleOpcode::string4:
      case PickleOpcode::text4: text(take_number(4)); return true;
      case PickleOpcode::text8: text(take_number(8)); return true;
      case PickleOpcode::bytes1: push_other("bytes", take_number(1)); return true;
      case PickleOpcode::bytes4: push_other("bytes", take_number(4)); return true;
      case PickleOpcode::bytes8:
      case PickleOpcode::bytearray8: push_other("bytes", take_number(8)); return true;
      default: return false;
    }
  }

  /// Skips what no tensor needs.
  void push_other(const char* what, std::size_t bytes) {
    take(bytes);
    push({.kind = Kind::other, .text = what});
  }

  bool build_container(PickleOpcode opcode) {
    const auto extend = [](PickleValue& container, const std::vector<PickleId>& items) {
      container.items.insert(container.items.end(), items.begin(), items.end());
    };
    const auto set_items = [&](const std::vector<PickleId>& items) {
      if (items.size() % 2 != 0) refuse_invalid("a key has no value");
      extend(top(Kind::dictionary, "a dictionary"), items);
    };
    const auto append = [&](const std::vector<PickleId>& items) { extend(top(Kind::list, "a list"), items); };
    switch (opcode) {
      case PickleOpcode::empty_dict: push({.kind = Kind::dictionary}); return true;
      case PickleOpcode::empty_list: push({.kind = Kind::list}); return true;
      case PickleOpcode::empty_tuple: push({.kind = Kind::tuple}); return true;
      case PickleOpcode::tuple1: push({.kind = Kind::tuple, .items = pop_many(1)}); return true;
      case PickleOpcode::tuple2: push({.kind = Kind::tuple, .items = pop_many(2)}); return true;
      case PickleOpcode::tuple3: push({.kind = Kind::tuple, .items = pop_many(3)}); return true;
      case PickleOpcode::tuple: push({.kind = Kind::tuple, .items = pop_to_mark()}); return true;
      case PickleOpcode::mark:
        if (marks_.size() == kMostMarks) refuse("has a pickle of more than 1,024 levels");
        marks_.push_back(stack_.size());
        return true;
      case PickleOpcode::append: append(pop_many(1)); return true;
      case PickleOpcode::appends: append(pop_to_mark()); return true;
      case PickleOpcode::set_item: set_items(pop_many(2)); return true;
      case PickleOpcode::set_items: set_items(pop_to_mark()); return true;
      case PickleOpcode::empty_set: push_other("a set", 0); return true;
      case PickleOpcode::add_items:
        pop_to_mark();
        top(Kind::other, "a set");
        return true;
      case PickleOpcode::frozen_set:
        pop_to_mark();
        push_other("a set", 0);
        return true;
      default: return false;
    }
  }

  bool use_memo(PickleOpcode opcode) {
    switch (opcode) {
      case PickleOpcode::put1: put_memo(take_number(1)); return true;
      case PickleOpcode::put4: put_memo(take_number(4)); return true;
      case PickleOpcode::memoize: put_memo(memo_.size()); return true;
      case PickleOpcode::get1: get_memo(take_number(1)); return true;
      case PickleOpcode::get4: get_memo(take_number(4)); return true;
      default: return false;
    }
  }

  bool call(PickleOpcode opcode) {
    switch (opcode) {
      case PickleOpcode::protocol:
        if (const auto version = take_number(1); version < 2 || version > 5)
          refuse("has a pickle of protocol " + std::to_string(version) + ", expected 2 to 5");
        return true;
      case PickleOpcode::frame: take_number(8); return true;
      case PickleOpcode::global: {
        const std::string_view module = take_line();
        push_global(module, take_line());
        return true;
      }
      case PickleOpcode::stack_global: {
        const auto names = pop_many(2);
        for (PickleId id : names)
          if (pickle_.at(id).kind != Kind::text) refuse_invalid("a name is not text");
        push_global(pickle_.at(names[0]).text, pickle_.at(names[1]).text);
        return true;
      }
      case PickleOpcode::reduce: reduce(); return true;
      case PickleOpcode::persistent: push({.kind = Kind::persistent, .items = pop_many(1)}); return true;
      case PickleOpcode::build:  // the attributes of an OrderedDict: versions of modules, not tensors
        pop();
        top(Kind::dictionary, "an OrderedDict");
        return true;
      default: return false;
    }
  }

  void push_global(std::string_view module, std::string_view name) {
    // Python 2, and protocol 2, say __builtin__ for builtins.
    const std::string full = std::string(module == "__builtin__" ? "builtins" : module) + "." + std::string(name);
    if (!is_pickle_name(full)) refuse("uses " + in_quotes(full) + ", which is not part of a state_dict");
    push({.kind = Kind::global, .text = full});
  }

  void reduce() {
    const auto parts = pop_many(2);
    const PickleValue& function = pickle_.at(parts[0]);
    const PickleValue& arguments = pickle_.at(parts[1]);
    if (function.kind != Kind::global || arguments.kind != Kind::tuple)
      refuse_invalid("it calls something else than a function");
    if (!is_pickle_function(function.text)) refuse("calls " + in_quotes(function.text) + ", which no state_dict does");
    if (function.text == kOrderedDict)
      push({.kind = Kind::dictionary, .items = pairs_of(arguments)});
    else
      push({.kind = Kind::call, .text = function.text, .items = {parts[1]}});
  }

  /// Of OrderedDict(), or of Python 2's OrderedDict([[key, value], ...]).
  std::vector<PickleId> pairs_of(const PickleValue& arguments) {
    std::vector<PickleId> items;
    if (arguments.items.empty()) return items;
    const auto is_sequence = [](const PickleValue& value) {
      return value.kind == Kind::list || value.kind == Kind::tuple;
    };
    const PickleValue& pairs = pickle_.at(arguments.items[0]);
    if (arguments.items.size() != 1 || !is_sequence(pairs)) refuse_invalid("an OrderedDict is not made of pairs");
    pairs_ += pairs.items.size();  // a pickle can refer to one list many times
    if (pairs_ > kMostValues) refuse("has a pickle of more than 262,144 values");
    for (const PickleId id : pairs.items) {
      const PickleValue& pair = pickle_.at(id);
      if (!is_sequence(pair) || pair.items.size() != 2) refuse_invalid("an OrderedDict is not made of pairs");
      items.insert(items.end(), pair.items.begin(), pair.items.end());
    }
    return items;
  }

  void push(PickleValue value) {
    if (pickle_.values.size() == kMostValues) refuse("has a pickle of more than 262,144 values");
    pickle_.values.push_back(std::move(value));
    stack_.push_back(static_cast<PickleId>(pickle_.values.size() - 1));
  }

  /// The number of values above the last mark.
  std::size_t available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  PickleId pop() { return pop_many(1).front(); }

  std::vector<PickleId> pop_many(std::size_t count) {
    if (available() < count) refuse_invalid("it takes missing values from the stack");
    std::vector<PickleId> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty()) refuse_invalid("a mark is missing");
    std::vector<PickleId> items = pop_many(available());
    marks_.pop_back();
    return items;
  }

  PickleValue& top(Kind kind, const char* what) {
    if (available() == 0 || pickle_.at(stack_.back()).kind != kind)
      refuse_invalid(std::string(what) + " is missing on the stack");
    return pickle_.values[stack_.back()];
  }

  /// Picklers number the memo from 0 without gaps.
  void put_memo(std::size_t index) {
    if (available() == 0 || index > memo_.size()) refuse_invalid("it puts nothing into the memo, or leaves a gap");
    if (index == memo_.size()) memo_.emplace_back();
    memo_[index] = stack_.back();
  }

  void get_memo(std::size_t index) {
    if (index >= memo_.size()) refuse_invalid("it gets a missing value from the memo");
    stack_.push_back(memo_[index]);
  }

  std::string_view rest_;
  const std::filesystem::path& path_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleId> memo_;
  std::size_t pairs_ = 0;
};

}  // namespace

Pickle read_pickle(std::string_view bytes, const std::filesystem::path& path) {
  if (bytes.size() > kLargestPickle)
    refuse(path, "has a pickle of " + std::to_string(bytes.size()) + " bytes, at most 4 MiB are supported");
  Pickle pickle = read_first_pickle(bytes, path);
  if (!bytes.empty()) refuse(path, "has a pickle that continues after its end");
  return pickle;
}

Pickle read_first_pickle(std::string_view& bytes, const std::filesystem::path& path) {
  PickleMachine machine(bytes.substr(0, kLargestPickle), path);
  Pickle pickle = machine.run();
  bytes.remove_prefix(std::min(bytes.size(), kLargestPickle) - machine.rest().size());
  return pickle;
}

}  // namespace gradring::train
