// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/pickle.h"
#include "train/checkpoint/pickle_opcode.h"
#include "train/checkpoint/pickle_program.h"

namespace gradring::train {

/// The machine that a pickle is a program for: a stack of values, marks on it, and a memo. Runs one program once.
class PickleMachine {
 public:
  PickleMachine(std::string_view program, const std::filesystem::path& path) : program_(program, path), path_(path) {}

  /// Errors    as read_pickle.
  Pickle run();

 private:
  using Kind = PickleValue::Kind;

  /// One opcode; false after the last.
  bool step();
  bool push_constant(PickleOpcode opcode);
  bool build_container(PickleOpcode opcode);
  bool use_memo(PickleOpcode opcode);
  bool call(PickleOpcode opcode);

  PickleId make(PickleValue value);
  void push(PickleValue value) { stack_.push_back(make(std::move(value))); }
  PickleId pop();
  std::vector<PickleId> pop_many(std::size_t count);
  std::vector<PickleId> pop_to_mark();
  PickleValue& top(Kind kind, const char* what);

  void push_global(std::string_view module, std::string_view name);
  void reduce();
  void remember(std::size_t index);
  void recall(std::size_t index);
  [[noreturn]] void refuse(const std::string& found) const { refuse_pickle(path_, found); }

  PickleProgram program_;
  const std::filesystem::path& path_;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleId> memo_;
};

}  // namespace gradring::train
