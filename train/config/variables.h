// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/config/given.h"
#include "train/launch/worker_environment.h"

namespace gradring::train {

/// The options that GRADRING_* variables set.
///
/// Errors    UsageError for a variable that sets none but is spelled nearly like one that does; names that one. Others that
///           begin with GRADRING_ belong to somebody else.
GivenOptions read_variables(const Variables& environment);

/// This process's whole environment.
Variables system_variables();

}  // namespace gradring::train
