// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/fetch_command.h"

#include <algorithm>
#include <cctype>

namespace gradring::data {
namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./+,:@%").find(c) != std::string_view::npos;
}

std::string quoted(const std::string& text) {
  if (std::ranges::all_of(text, is_plain)) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string fetch_command(std::string_view name, const std::filesystem::path& data_dir) {
  constexpr const char* kDefault = "datasets";
  return "gradring data fetch " + std::string(name) + " --data-dir " +
         quoted(data_dir.empty() ? kDefault : data_dir.string());
}

std::string needs_folder_message(std::string_view name) {
  return std::string(name) +
         " is read from files: name their folder with --data-dir; to get them: " + fetch_command(name, "") +
         "; --dataset digits needs no files";
}

}  // namespace gradring::data
