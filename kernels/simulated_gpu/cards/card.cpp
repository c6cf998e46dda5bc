// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cards/card.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "kernels/base/error.h"

namespace gradring::simulated_gpu {

const std::vector<Card>& cards() {
  static const std::vector<Card> all = [] {
    std::vector<Card> parsed;
    for (const auto& [name, text] : {std::pair("t4", card_text::t4), std::pair("a100", card_text::a100),
                                     std::pair("rtx3090", card_text::rtx3090), std::pair("rtx4090", card_text::rtx4090),
                                     std::pair("h100", card_text::h100), std::pair("h200", card_text::h200)})
      parsed.push_back(parse_card(name, text));
    return parsed;
  }();
  return all;
}

std::string card_names() {
  std::string names;
  for (const Card& card : cards()) names += (names.empty() ? "" : ", ") + card.name;
  return names;
}

const Card* find_card(std::string_view name) {
  const auto found = std::ranges::find(cards(), name, &Card::name);
  return found == cards().end() ? nullptr : &*found;
}

bool is_card_file(std::string_view name_or_file) {
  return name_or_file.ends_with(".card") || name_or_file.find('/') != name_or_file.npos;
}

Card card_of(const std::string& name_or_file) {
  if (const Card* const known = find_card(name_or_file)) return *known;
  if (!is_card_file(name_or_file))
    throw InvalidArgument("no GPU '" + name_or_file + "' can be simulated: expected one of " + card_names() +
                          ", or a file FILE.card that describes one");
  std::ifstream file(name_or_file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw InvalidArgument("the GPU's file " + name_or_file + " cannot be read: " + std::strerror(errno));
  return parse_card(name_or_file, text);
}

}  // namespace gradring::simulated_gpu
