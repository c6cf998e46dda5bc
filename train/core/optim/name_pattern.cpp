// SPDX-License-Identifier: Apache-2.0
#include "train/core/optim/name_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"

namespace gradring::train {

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, after_star = 0;  // the last star, and where its text ends so far
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

void check_matches_any(std::string_view what, std::string_view pattern, std::span<const std::string_view> names) {
  constexpr std::size_t kListed = 6;
  if (std::ranges::any_of(names, [&](std::string_view name) { return matches(pattern, name); })) return;
  std::string letters(pattern);
  std::erase_if(letters, [](char c) { return c == '*' || c == '?'; });
  throw InvalidArgument(fmt::format("{} '{}' matches no parameter of the model, which has {}{}.{}", what, pattern,
                                    fmt::join(names.first(std::min(kListed, names.size())), ", "),
                                    names.size() > kListed ? fmt::format(" and {} more", names.size() - kListed) : "",
                                    did_you_mean(letters, names)));
}

}  // namespace gradring::train
