// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace gradring::train {

// Standard output of commands. What reaches it through these functions has no control characters of other origin: names,
// paths and events come from files, and a terminal would obey them (kernels/base/printable.h). Standard error is
// print_to_stderr (kernels/base/file.h), which does the same.

/// Prints text for people; characters that a terminal obeys are escaped, but for line breaks and tabs.
///
/// Errors    std::system_error if standard output cannot be written.
void print_shown(std::string_view text);

/// The same, formatted: the text for fmt::print.
template <class... Values>
void print_text(fmt::format_string<Values...> format, Values&&... values) {
  print_shown(fmt::format(format, std::forward<Values>(values)...));
}

/// Prints data for other programs: unchanged, unless standard output is a terminal.
///
/// Errors    the same.
void print_data(std::string_view data);

}  // namespace gradring::train
