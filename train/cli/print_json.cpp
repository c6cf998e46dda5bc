// SPDX-License-Identifier: Apache-2.0
#include "train/cli/print_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gradring::train {

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace gradring::train
