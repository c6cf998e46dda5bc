// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "train/checkpoint/checkpoint.h"

namespace gradring::train {

/// What an option of words ("dataset", "model") was in the run that saved a checkpoint; empty if it does not say.
std::string saved_setting(const Checkpoint& checkpoint, std::string_view option);

}  // namespace gradring::train
