// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/transport/transport.h"

namespace gradring::comm {

/// Validates a step; every transport calls it before it runs one.
///
/// Errors    InvalidArgument if the step exceeds its segment, names an invalid peer, sums a dtype without sum, or uses
///           expose on a transport that does not reach its peers' memory.
void check_step(const Step& step, const Transport& transport);

}  // namespace gradring::comm
