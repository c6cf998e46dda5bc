// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/in_quotes.h"

#include "kernels/base/printable.h"

namespace gradring {

std::string shortened(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return std::string(text);
  std::size_t bytes = 0;
  for (std::size_t next = 0; next <= most_bytes; next += first_character(text.substr(next)).bytes) bytes = next;
  return std::string(text.substr(0, bytes)) + "...";
}

std::string in_quotes(std::string_view text) { return "'" + printable(shortened(text, 100)) + "'"; }

}  // namespace gradring
