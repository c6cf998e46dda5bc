// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train::markdown {

/// Text that shows as it is: control characters become spaces, characters with a meaning in Markdown or HTML are
/// escaped.
std::string plain(std::string_view text);

/// `text` between enough backticks, on one line.
std::string code(std::string_view text);

/// A table of cells that are Markdown already, except that bars in them need no escape.
std::string table(std::span<const std::vector<std::string>> rows);

}  // namespace gradring::train::markdown
