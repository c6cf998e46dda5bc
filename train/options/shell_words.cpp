// SPDX-License-Identifier: Apache-2.0
#include "train/options/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "kernels/base/printable.h"

namespace gradring::train {
namespace {

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) ||
         std::string_view("_./=,:-+@%").find(letter) != std::string_view::npos;
}

/// $'a\x1b': bytes, because not every shell has \u, and three octal digits, because \x takes as many as follow.
std::string with_escapes(std::string_view word) {
  std::string text = "$'";
  while (!word.empty()) {
    const Character character = first_character(word);
    const std::string_view bytes = word.substr(0, character.bytes);
    if (bytes == "'" || bytes == "\\")
      text += fmt::format("\\{}", bytes);
    else if (character.is_printable())
      text += bytes;
    else
      for (const char byte : bytes) text += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
    word.remove_prefix(character.bytes);
  }
  return text + "'";
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  if (printable_bytes(word) < word.size()) return with_escapes(word);
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::string shell_command(std::span<const std::string> words) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + shell_quoted(word);
  return command;
}

}  // namespace gradring::train
