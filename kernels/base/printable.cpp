// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/printable.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace gradring {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Bytes of the UTF-8 character at the start of `text`; 0 if it is not one.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xC2 ? 0
                            : first < 0xE0 ? 2
                            : first < 0xF0 ? 3
                            : first < 0xF5 ? 4
                                           : 0;
  if (bytes == 0 || text.size() < bytes || !std::ranges::all_of(text.substr(1, bytes - 1), continues)) return 0;
  const bool overlong = (first == 0xE0 && at(1) < 0xA0) || (first == 0xF0 && at(1) < 0x90);
  const bool outside = (first == 0xED && at(1) > 0x9F) || (first == 0xF4 && at(1) > 0x8F);
  return overlong || outside ? 0 : bytes;
}

template <class... Value>
std::string formatted(const char* format, Value... values) {
  char text[16];
  const int size = std::snprintf(text, sizeof text, format, values...);
  return {text, static_cast<std::size_t>(size)};
}

bool is_kept(std::string_view text, const Character& character, std::string_view kept) {
  return character.is_printable() || (character.bytes == 1 && kept.find(text[0]) != kept.npos);
}

template <class Escape>
std::string escaped(std::string_view text, std::string_view kept, Escape escape) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t plain = printable_bytes(text, kept);
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Character character = first_character(text);
    shown += escape(character, text[0]);
    text.remove_prefix(character.bytes);
  }
  return shown;
}

}  // namespace

bool Character::is_printable() const {
  if (!code) return false;
  const auto is_within = [this](char32_t least, char32_t most) { return *code >= least && *code <= most; };
  const bool is_control = *code < 0x20 || is_within(0x7F, 0x9F) || is_within(0x2028, 0x2029);
  const bool turns_text =
      *code == 0x061C || is_within(0x200E, 0x200F) || is_within(0x202A, 0x202E) || is_within(0x2066, 0x2069);
  return !is_control && !turns_text;
}

Character first_character(std::string_view text) {
  const std::size_t bytes = character_bytes(text);
  if (bytes == 0) return {};
  constexpr unsigned char kPayload[] = {0x7F, 0x1F, 0x0F, 0x07};  // of a first byte
  char32_t code = static_cast<unsigned char>(text[0]) & kPayload[bytes - 1];
  for (std::size_t i = 1; i < bytes; ++i) code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
  return {.bytes = bytes, .code = code};
}

std::size_t printable_bytes(std::string_view text, std::string_view kept) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const std::string_view rest = text.substr(bytes);
    const Character character = first_character(rest);
    if (!is_kept(rest, character, kept)) break;
    bytes += character.bytes;
  }
  return bytes;
}

std::string escape_of(const Character& character, char first_byte) {
  if (!character.code) return formatted("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(first_byte)));
  const auto code = static_cast<unsigned>(*character.code);
  return code < 0x80 ? formatted("\\x%02x", code) : formatted("\\u%04x", code);
}

std::string printable(std::string_view text, std::string_view kept) { return escaped(text, kept, escape_of); }

std::string printable_json(std::string_view json) {
  return escaped(json, "\n", [](const Character& character, char) {
    return formatted("\\u%04x", static_cast<unsigned>(character.code.value_or(0xFFFD)));
  });
}

std::string demangled(const char* name) {
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  int failed = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &failed));
  return failed == 0 ? text.get() : name;
}

}  // namespace gradring
