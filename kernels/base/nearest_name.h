// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradring {

/// The one of `names` that `name` may misspell: with the fewest letters to insert, delete or change, if those are fewer
/// than half of it.
std::string_view nearest_spelling(std::string_view name, std::span<const std::string_view> names);

/// The one of `names` that may be meant by `name`: the nearest spelling; else one that abbreviates it, or that it
/// abbreviates (list: ls, params: parameters).
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

/// " Did you mean 'nearest'?", or nothing: to append to an error message.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

}  // namespace gradring
