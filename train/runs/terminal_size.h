// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace gradring::train {

struct TerminalSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

/// The current size of the terminal behind `fd`; nothing if there is no terminal. A terminal without a size has 24 rows
/// and 80 columns.
std::optional<TerminalSize> terminal_size(int fd);

}  // namespace gradring::train
