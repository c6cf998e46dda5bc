// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace gradring::train {

/// Prints what a command shows with --json. Bytes that are not UTF-8, for example of a file's name, become U+FFFD.
void print_json(const nlohmann::ordered_json& json);

}  // namespace gradring::train
