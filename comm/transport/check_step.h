// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/transport/transport.h"

namespace gradring::comm {

/// Whether a transport can make a step: every transport asks this before it makes one.
///
/// Errors    InvalidArgument if the step reaches past its segment, names a peer that is not there, sums elements that have
///           no sum, or lends where ranks do not reach each other's memory.
void check_step(const Step& step, const Transport& transport);

}  // namespace gradring::comm
