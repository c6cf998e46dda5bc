// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/launch/options/option.h"

namespace gradring::train {

/// Fills in what follows from several options together, and refuses what contradicts itself.
///
/// Errors    InvalidArgument that names the options.
void settle(LaunchDraft& draft, const LaunchWorld& world);

}  // namespace gradring::train
