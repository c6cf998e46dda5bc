// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradring::train {

/// Whether a file descriptor is a terminal that moves its cursor: TERM is set, and not to dumb.
bool is_terminal(int fd);

/// The width of a terminal now; 80 for anything else.
std::size_t columns_of(int fd);

/// Emphasis on a terminal (is_terminal), unless NO_COLOR is set to anything; elsewhere none.
///
/// Source    ECMA-48, 8.3.117 (SGR); no-color.org
class TextLook {
 public:
  explicit TextLook(int fd);

  std::string dim(std::string_view text) const;

 private:
  bool on_;
};

}  // namespace gradring::train
