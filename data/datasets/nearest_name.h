// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace gradring::data {

/// Which of `names` a person most likely meant by `typed`: the one that the fewest insertions, deletions and
/// replacements make of it, upper and lower case taken as one. Of equals the first.
///
/// Errors    InvalidArgument if there are no names.
/// Source    Levenshtein 1966; the dynamic program of Wagner and Fischer 1974.
std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> names);

}  // namespace gradring::data
