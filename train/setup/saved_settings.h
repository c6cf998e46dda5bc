// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "train/checkpoint/checkpoint.h"

namespace gradring::train {

/// The settings of the run that saved a checkpoint, as TOML; nothing if it does not say.
std::optional<std::string> saved_settings(const Checkpoint& checkpoint);

/// What an option of words ("dataset", "model") was in the run that saved a checkpoint; empty if it does not say.
std::string saved_setting(const Checkpoint& checkpoint, std::string_view option);

}  // namespace gradring::train
