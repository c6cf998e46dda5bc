// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/process_group.h"

namespace gradring::tests {

/// Conformance checks of transports, to be run by all ranks of a group. Each runs collectives on awkward sizes, dtypes
/// and offsets, and throws if an element is not exact or an element outside the range has changed.
void check_all_reduce(comm::ProcessGroup& group);
void check_reduce_scatter_and_all_gather(comm::ProcessGroup& group);
void check_broadcast(comm::ProcessGroup& group);
void check_host_helpers(comm::ProcessGroup& group);
/// The result has the bits of the order of sums in collectives/schedules.h.
void check_order_of_sums(comm::ProcessGroup& group);

}  // namespace gradring::tests
