// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "train/records/checkpoint/pickle.h"

namespace gradring::train {

/// Writes a pickle of protocol 2, opcode by opcode. The caller is responsible for a valid order.
class PickleWriter {
 public:
  PickleWriter();

  void mark() { put(PickleOpcode::mark); }
  void text(std::string_view value);
  void integer(std::int64_t value);
  /// A tuple of integers.
  void integers(std::span<const std::int64_t> values);
  void none() { put(PickleOpcode::none); }
  void boolean(bool value) { put(value ? PickleOpcode::new_true : PickleOpcode::new_false); }
  void real(double value);
  void global(std::string_view module, std::string_view name);
  void empty_ordered_dict();
  void empty_dict() { put(PickleOpcode::empty_dict); }
  void empty_list() { put(PickleOpcode::empty_list); }
  void persistent() { put(PickleOpcode::persistent); }
  void call() { put(PickleOpcode::reduce); }
  /// Makes a tuple of everything since the mark.
  void end_tuple() { put(PickleOpcode::tuple); }
  /// Adds everything since the mark, keys and values in turn, to the dictionary below the mark.
  void end_items() { put(PickleOpcode::set_items); }
  /// Adds everything since the mark to the list below the mark.
  void end_appends() { put(PickleOpcode::appends); }
  std::string finish();

 private:
  void put(PickleOpcode opcode) { bytes_ += static_cast<char>(opcode); }

  std::string bytes_;
};

}  // namespace gradring::train
