// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/files/sha256.h"

namespace gradring::train {

// What is downloaded and what was trained are told by the same sums.
using data::Sha256;
using data::Sha256Sum;
using data::to_hex;

}  // namespace gradring::train
