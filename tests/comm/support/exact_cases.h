// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/process_group.h"

namespace gradring::comm::testing {

/// What every transport must do: each runs all collectives on awkward sizes, types and offsets, and throws where an element
/// is not exactly what it should be, or an element outside the range has changed. To be run by all ranks of a group.
void check_all_reduce(ProcessGroup& group);
void check_reduce_scatter_and_all_gather(ProcessGroup& group);
void check_broadcast(ProcessGroup& group);
void check_host_helpers(ProcessGroup& group);
/// The bits of the result are those of the order of sums that collectives/ring.h documents.
void check_order_of_sums(ProcessGroup& group);

}  // namespace gradring::comm::testing
