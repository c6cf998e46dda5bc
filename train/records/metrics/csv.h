// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradring::train {

/// A line of CSV: the fields, separated by commas, and `line_end`. A field with a comma, a quote or a line break is in
/// quotes, and its own quotes are doubled.
///
/// Source    RFC 4180, whose lines end with CR LF; with the default they end as those of other text files.
std::string csv_line(std::span<const std::string> fields, std::string_view line_end = "\n");

}  // namespace gradring::train
