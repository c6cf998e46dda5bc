// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gradring::nn {

/// The values of names in expressions.
using Values = std::map<std::string, std::int64_t, std::less<>>;

/// The value of an integer expression: + - * / and parentheses over integers and names; a quotient must be exact.
///
/// Errors    InvalidArgument that is the reason only: an unknown name (lists those that there are), a remainder, an
///           overflow of 64 bits, more than 50 nested parentheses, or what is no expression.
/// Example   evaluate("2 * (width - 1)", {{"width", 8}}) == 14
std::int64_t evaluate(std::string_view expression, const Values& values);

/// Whether a name may be used in expressions: letters, digits and _, not a digit first.
bool is_name(std::string_view text);

}  // namespace gradring::nn
