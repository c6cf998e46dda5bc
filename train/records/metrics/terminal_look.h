// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gradring::train {

/// Whether a file descriptor is a terminal that moves its cursor: TERM is set, and not to dumb. Not with --color never,
/// nor below mpirun: Open MPI gives each rank a terminal, and passes on to a file what is written there.
bool is_terminal(int fd);

/// Whether text there has emphasis: as --color says, by default on a terminal (is_terminal) unless NO_COLOR is set to
/// anything.
///
/// Source    no-color.org
bool is_styled(int fd);

struct TerminalSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

/// The current size of the terminal behind `fd`; nothing if there is no terminal. A terminal without a size has 24 rows
/// and 80 columns.
std::optional<TerminalSize> terminal_size(int fd);

/// Emphasis where is_styled() holds; elsewhere none.
///
/// Source    ECMA-48, 8.3.117 (SGR)
class TextLook {
 public:
  explicit TextLook(int fd);

  std::string dim(std::string_view text) const;

 private:
  bool on_;
};

}  // namespace gradring::train
