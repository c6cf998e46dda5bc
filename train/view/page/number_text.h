// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gradring::train::page {

/// "12,345.6": separators between thousands of a decimal number.
std::string grouped(std::string number);

/// About three significant digits: "12,345", "12.3", "0.0123", "1.2e-07"; "–" unless finite.
std::string short_number(double value);
std::string count_text(std::int64_t value);

/// Each with its unit: "12.3 ms", "4 min 5 s", "98.25 %".
std::string seconds_text(double seconds);
std::string percent_text(double fraction, int decimals = 2);

}  // namespace gradring::train::page
