// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gradring::train {

/// Readers of what people type behind an option.
///
/// Errors    InvalidArgument with what the value must be; the caller says where it stood.

int whole_number(const std::string& text, int lowest, int highest);

/// "2m", "30s", "500ms"; a number alone is seconds, as torchrun's are. At most a day.
std::chrono::milliseconds duration(const std::string& text);

/// "a,b,c" in its parts; nothing for "".
std::vector<std::string> comma_separated(const std::string& text);

}  // namespace gradring::train
