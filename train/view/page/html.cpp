// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/html.h"

#include "kernels/base/printable.h"

namespace gradring::train::page {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string_view escaped_byte(char byte) {
  switch (byte) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (const std::string_view entity = escaped_byte(text[0]); !entity.empty())
      result += entity;
    else if (character.is_printable() || text[0] == '\t' || text[0] == '\n')
      result += text.substr(0, character.bytes);
    else
      result += kReplacement;
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace gradring::train::page
