// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/pickle_opcode.h"

#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace gradring::train {

std::string opcode_name(std::uint8_t opcode) {
  // Those that a reader may meet in a pickle of something else.
  constexpr std::pair<std::uint8_t, std::string_view> kOthers[] = {
      {'0', "POP"},
      {'1', "POP_MARK"},
      {'2', "DUP"},
      {'F', "FLOAT"},
      {'I', "INT"},
      {'L', "LONG"},
      {'P', "PERSID"},
      {'S', "STRING"},
      {'T', "BINSTRING"},
      {'U', "SHORT_BINSTRING"},
      {'V', "UNICODE"},
      {'B', "BINBYTES"},
      {'C', "SHORT_BINBYTES"},
      {'d', "DICT"},
      {'l', "LIST"},
      {'g', "GET"},
      {'p', "PUT"},
      {'i', "INST"},
      {'o', "OBJ"},
      {0x81, "NEWOBJ"},
      {0x82, "EXT1"},
      {0x83, "EXT2"},
      {0x84, "EXT4"},
      {0x8b, "LONG4"},
      {0x8d, "BINUNICODE8"},
      {0x8e, "BINBYTES8"},
      {0x8f, "EMPTY_SET"},
      {0x90, "ADDITEMS"},
      {0x91, "FROZENSET"},
      {0x92, "NEWOBJ_EX"},
      {0x96, "BYTEARRAY8"},
      {0x97, "NEXT_BUFFER"},
      {0x98, "READONLY_BUFFER"},
  };
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "0x%02x", opcode);
  for (const auto& [code, name] : kOthers)
    if (code == opcode) return std::string(name) + " (" + hex.data() + ")";
  return hex.data();
}

}  // namespace gradring::train
