// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/process_group.h"

namespace gradring::tests {

/// What every transport must do: each runs all collectives on awkward sizes, types and offsets, and throws where an
/// element is not exactly what it should be, or an element outside the range has changed. To be run by all ranks of a
/// group.
void check_all_reduce(comm::ProcessGroup& group);
void check_reduce_scatter_and_all_gather(comm::ProcessGroup& group);
void check_broadcast(comm::ProcessGroup& group);
void check_host_helpers(comm::ProcessGroup& group);
/// The bits of the result are those of the order of sums that collectives/ring.h documents.
void check_order_of_sums(comm::ProcessGroup& group);

}  // namespace gradring::tests
