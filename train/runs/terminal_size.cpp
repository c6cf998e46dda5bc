// SPDX-License-Identifier: Apache-2.0
#include "train/runs/terminal_size.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace gradring::train {

std::optional<TerminalSize> terminal_size(int fd) {
  if (::isatty(fd) == 0) return std::nullopt;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return TerminalSize();
  return TerminalSize{.rows = size.ws_row, .columns = size.ws_col};
}

}  // namespace gradring::train
