// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/process_group.h"

namespace gradring::train::bench {

/// Processor time that the processes of the other ranks used since `begin`, each one's
/// processor_seconds_of_process() then. Collective.
double processor_seconds_of_others(comm::ProcessGroup& group, double begin);

}  // namespace gradring::train::bench
