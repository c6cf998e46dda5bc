// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/pickle_machine.h"

#include "train/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kLargestPickle = 4u << 20;
constexpr std::size_t kMostValues = 262'144;
constexpr std::size_t kMostMarks = 1'024;
constexpr const char* kOrderedDict = "collections.OrderedDict";

/// The names that a state_dict consists of.
bool is_known(std::string_view module, std::string_view name) {
  if (module == "collections") return name == "OrderedDict";
  if (module == "torch._utils") return name == "_rebuild_tensor_v2" || name == "_rebuild_parameter";
  return module == "torch" && find_type(&TensorTypeNames::torch, name).has_value();
}

}  // namespace

Pickle read_pickle(std::string_view bytes, const std::filesystem::path& path) {
  if (bytes.size() > kLargestPickle) refuse_pickle(path, "has a pickle of " + std::to_string(bytes.size()) + " bytes");
  return PickleMachine(bytes, path).run();
}

Pickle PickleMachine::run() {
  while (step()) {
  }
  return std::move(pickle_);
}

bool PickleMachine::step() {
  const auto code = static_cast<std::uint8_t>(program_.take(1).front());
  const auto opcode = static_cast<PickleOpcode>(code);
  if (opcode == PickleOpcode::stop) {
    pickle_.root = pop();
    if (!stack_.empty() || !marks_.empty() || !program_.at_end()) refuse("has a pickle that goes on after its end");
    return false;
  }
  const bool known = push_constant(opcode) || build_container(opcode) || use_memo(opcode) || call(opcode);
  if (!known) refuse("has the opcode " + opcode_name(code) + " in its pickle, which no state_dict needs");
  return true;
}

bool PickleMachine::push_constant(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::none: push({.kind = Kind::none}); return true;
    case PickleOpcode::new_true: push({.kind = Kind::boolean, .number = 1}); return true;
    case PickleOpcode::new_false: push({.kind = Kind::boolean}); return true;
    case PickleOpcode::int1:
      push({.kind = Kind::integer, .number = static_cast<std::int64_t>(program_.take_number(1))});
      return true;
    case PickleOpcode::int2:
      push({.kind = Kind::integer, .number = static_cast<std::int64_t>(program_.take_number(2))});
      return true;
    case PickleOpcode::int4: push({.kind = Kind::integer, .number = program_.take_signed(4)}); return true;
    case PickleOpcode::long1:
      push({.kind = Kind::integer, .number = program_.take_signed(program_.take_number(1))});
      return true;
    case PickleOpcode::real:
      program_.take(8);
      push({.kind = Kind::real});
      return true;
    case PickleOpcode::text1:
      push({.kind = Kind::text, .text = std::string(program_.take(program_.take_number(1)))});
      return true;
    case PickleOpcode::text4:
      push({.kind = Kind::text, .text = std::string(program_.take(program_.take_number(4)))});
      return true;
    default: return false;
  }
}

bool PickleMachine::build_container(PickleOpcode opcode) {
  const auto extend = [](PickleValue& container, const std::vector<PickleId>& items) {
    container.items.insert(container.items.end(), items.begin(), items.end());
  };
  const auto set_items = [&](const std::vector<PickleId>& items) {
    if (items.size() % 2 != 0) refuse("has a pickle with a key that has no value");
    extend(top(Kind::dictionary, "a dictionary"), items);
  };
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
    case PickleOpcode::append: {
      const std::vector<PickleId> items = pop_many(1);
      extend(top(Kind::list, "a list"), items);
      return true;
    }
    case PickleOpcode::appends: {
      const std::vector<PickleId> items = pop_to_mark();
      extend(top(Kind::list, "a list"), items);
      return true;
    }
    case PickleOpcode::set_item: set_items(pop_many(2)); return true;
    case PickleOpcode::set_items: set_items(pop_to_mark()); return true;
    default: return false;
  }
}

bool PickleMachine::use_memo(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::put1: remember(program_.take_number(1)); return true;
    case PickleOpcode::put4: remember(program_.take_number(4)); return true;
    case PickleOpcode::memoize: remember(memo_.size()); return true;
    case PickleOpcode::get1: recall(program_.take_number(1)); return true;
    case PickleOpcode::get4: recall(program_.take_number(4)); return true;
    default: return false;
  }
}

bool PickleMachine::call(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::protocol:
      if (const auto version = program_.take_number(1); version < 2 || version > 5)
        refuse("has a pickle of protocol " + std::to_string(version));
      return true;
    case PickleOpcode::frame: program_.take_number(8); return true;
    case PickleOpcode::global: {
      const std::string_view module = program_.take_line();
      push_global(module, program_.take_line());
      return true;
    }
    case PickleOpcode::stack_global: {
      const auto names = pop_many(2);
      for (PickleId id : names)
        if (pickle_.at(id).kind != Kind::text) refuse("has a broken pickle: a name that is no text");
      push_global(pickle_.at(names[0]).text, pickle_.at(names[1]).text);
      return true;
    }
    case PickleOpcode::reduce: reduce(); return true;
    case PickleOpcode::persistent: push({.kind = Kind::persistent, .items = pop_many(1)}); return true;
    case PickleOpcode::build:  // the attributes of an OrderedDict: versions of modules, which say nothing about tensors
      pop();
      top(Kind::dictionary, "an OrderedDict");
      return true;
    default: return false;
  }
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  const std::string full = std::string(module) + "." + std::string(name);
  if (!is_known(module, name)) refuse("asks for " + in_quotes(full) + ", which is no part of a state_dict");
  push({.kind = Kind::global, .text = full});
}

void PickleMachine::reduce() {
  const auto parts = pop_many(2);
  const PickleValue& function = pickle_.at(parts[0]);
  const PickleValue& arguments = pickle_.at(parts[1]);
  if (function.kind != Kind::global || arguments.kind != Kind::tuple) refuse("has a broken pickle: a call of nothing");
  if (function.text == kOrderedDict) {
    if (!arguments.items.empty()) refuse("makes an OrderedDict in a way that no state_dict needs");
    push({.kind = Kind::dictionary});
  } else if (function.text.starts_with("torch._utils.")) {
    push({.kind = Kind::call, .text = function.text, .items = {parts[1]}});
  } else {
    refuse("calls " + in_quotes(function.text) + ", which no state_dict does");
  }
}

PickleId PickleMachine::make(PickleValue value) {
  if (pickle_.values.size() == kMostValues) refuse("has a pickle of more than 262,144 values");
  pickle_.values.push_back(std::move(value));
  return static_cast<PickleId>(pickle_.values.size() - 1);
}

PickleId PickleMachine::pop() { return pop_many(1).front(); }

std::vector<PickleId> PickleMachine::pop_many(std::size_t count) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() - floor < count) refuse("has a broken pickle: it takes values that are not there");
  std::vector<PickleId> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

std::vector<PickleId> PickleMachine::pop_to_mark() {
  if (marks_.empty()) refuse("has a broken pickle: it asks for a mark that is not there");
  std::vector<PickleId> items = pop_many(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

PickleValue& PickleMachine::top(Kind kind, const char* what) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() == floor || pickle_.at(stack_.back()).kind != kind)
    refuse("has a broken pickle: " + std::string(what) + " is not where it should be");
  return pickle_.values[stack_.back()];
}

/// Picklers number what they remember from 0 on.
void PickleMachine::remember(std::size_t index) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() == floor || index > memo_.size()) refuse("has a broken pickle: it remembers nothing");
  if (index == memo_.size()) memo_.emplace_back();
  memo_[index] = stack_.back();
}

void PickleMachine::recall(std::size_t index) {
  if (index >= memo_.size()) refuse("has a broken pickle: it recalls what it never remembered");
  stack_.push_back(memo_[index]);
}

}  // namespace gradring::train
