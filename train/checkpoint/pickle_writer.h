// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "train/checkpoint/pickle_opcode.h"

namespace gradring::train {

/// Writes a pickle of protocol 2, opcode by opcode; who calls sees to the order. Nothing is shared in it.
class PickleWriter {
 public:
  PickleWriter();

  void mark() { put(PickleOpcode::mark); }
  void text(std::string_view value);
  void integer(std::int64_t value);
  /// A tuple of integers.
  void integers(std::span<const std::int64_t> values);
  void no() { put(PickleOpcode::new_false); }
  void global(std::string_view module, std::string_view name);
  void empty_ordered_dict();
  void persistent() { put(PickleOpcode::persistent); }
  void call() { put(PickleOpcode::reduce); }
  /// All since the mark becomes a tuple, or key and value by turns of the dictionary below it.
  void end_tuple() { put(PickleOpcode::tuple); }
  void end_items() { put(PickleOpcode::set_items); }
  std::string finish();

 private:
  void put(PickleOpcode opcode) { bytes_ += static_cast<char>(opcode); }

  std::string bytes_;
};

}  // namespace gradring::train
