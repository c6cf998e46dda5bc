// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/printable.h"

#include <algorithm>

namespace gradring {

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown(text);
  const auto is_control = [kept](char c) {
    return (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && kept.find(c) == kept.npos;
  };
  std::ranges::replace_if(shown, is_control, '?');
  return shown;
}

}  // namespace gradring
