// SPDX-License-Identifier: Apache-2.0
#include "train/options/print_text.h"

#include <unistd.h>

#include "kernels/base/printable.h"

namespace gradring::train {

void print_shown(std::string_view text) { fmt::print("{}", printable(text, "\n\t")); }

void print_data(std::string_view data) {
  if (::isatty(STDOUT_FILENO) != 0) return print_shown(data);
  fmt::print("{}", data);
}

}  // namespace gradring::train
