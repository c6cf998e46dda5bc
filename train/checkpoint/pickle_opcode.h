// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gradring::train {

/// The opcodes of state_dicts, named as pickletools names them.
enum class PickleOpcode : std::uint8_t {
  mark = '(',
  stop = '.',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  int1 = 'K',
  int2 = 'M',
  int4 = 'J',
  long1 = 0x8a,
  real = 'G',
  text4 = 'X',
  text1 = 0x8c,
  empty_dict = '}',
  empty_list = ']',
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  append = 'a',
  appends = 'e',
  set_item = 's',
  set_items = 'u',
  global = 'c',
  stack_global = 0x93,
  reduce = 'R',
  build = 'b',
  persistent = 'Q',
  put1 = 'q',
  put4 = 'r',
  memoize = 0x94,
  get1 = 'h',
  get4 = 'j',
  protocol = 0x80,
  frame = 0x95,
};

/// For messages: "INST (0x69)".
std::string opcode_name(std::uint8_t opcode);

}  // namespace gradring::train
