// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradring::train {

/// The one of `names` with the fewest letters to insert, remove or replace until it is `name`: what a typing error meant.
/// Empty if none is near: more than a third of the letters would have to change.
///
/// Cost      O(length^2) per name.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

}  // namespace gradring::train
