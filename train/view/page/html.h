// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gradring::train::page {

/// Text as HTML or SVG shows it, in an element or in a quoted attribute. Bytes that are not UTF-8, and characters
/// that a browser obeys (kernels/base/printable.h) but tab and newline, become U+FFFD.
std::string escaped(std::string_view text);

}  // namespace gradring::train::page
