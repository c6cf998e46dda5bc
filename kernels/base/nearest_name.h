// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradring {

/// The one of `names` that the user may have meant by `name`: the one with the fewest letters to insert, delete or
/// change, if those are fewer than half of it; empty otherwise.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

/// " Did you mean 'nearest'?", or nothing: to append to an error message.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

}  // namespace gradring
