// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/terminal_look.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "train/options/environment_variable.h"

namespace gradring::train {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_terminal(int fd) {
  const std::string_view kind = variable("TERM");
  return !kind.empty() && kind != "dumb" && ::isatty(fd) && variable(kColorVariable) != "never" &&
         variable("OMPI_COMM_WORLD_RANK").empty();
}

bool is_styled(int fd) {
  return variable(kColorVariable) == "always" || (is_terminal(fd) && variable("NO_COLOR").empty());
}

std::optional<TerminalSize> terminal_size(int fd) {
  if (::isatty(fd) == 0) return std::nullopt;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return TerminalSize();
  return TerminalSize{.rows = size.ws_row, .columns = size.ws_col};
}

TextLook::TextLook(int fd) : on_(is_styled(fd)) {}

std::string TextLook::dim(std::string_view text) const {
  return on_ ? fmt::format("\033[2m{}\033[0m", text) : std::string(text);
}

}  // namespace gradring::train
