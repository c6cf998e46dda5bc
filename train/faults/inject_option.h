// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/config/options.h"

namespace gradring::train {

/// --inject, which may be given several times.
Option inject_option();

}  // namespace gradring::train
