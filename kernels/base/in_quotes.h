// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradring {

/// `text`, or its first characters in at most `most_bytes`, and "...".
std::string shortened(std::string_view text, std::size_t most_bytes);

/// 'text' for a message: at most 100 bytes of it, with escapes in the place of characters that are not printable.
std::string in_quotes(std::string_view text);

}  // namespace gradring
