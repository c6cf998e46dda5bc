// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring {

/// For messages: "1, 3"; of many numbers the first eight: "1, 2, 3, 4, 5, 6, 7, 8 and 291 more".
std::string number_list(std::span<const int> numbers);

}  // namespace gradring
