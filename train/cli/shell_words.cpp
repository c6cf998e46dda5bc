// SPDX-License-Identifier: Apache-2.0
#include "train/cli/shell_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace gradring::train {

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) ||
           std::string_view("_./=,:-+@%").find(letter) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
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
