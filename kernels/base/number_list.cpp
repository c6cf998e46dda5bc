// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/number_list.h"

#include <algorithm>

namespace gradring {

std::string number_list(std::span<const int> numbers) {
  constexpr std::size_t kMostNamed = 8;
  const std::size_t named = std::min(numbers.size(), kMostNamed);
  std::string text;
  for (const int number : numbers.first(named)) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text + (named < numbers.size() ? " and " + std::to_string(numbers.size() - named) + " more" : "");
}

}  // namespace gradring
