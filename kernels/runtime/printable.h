// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gradring {

/// `text` without what a terminal obeys: control characters, but for those in `kept`, become '?'.
std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace gradring
