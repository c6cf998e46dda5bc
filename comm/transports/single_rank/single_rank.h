// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/transport/transport.h"
#include "kernels/runtime/device.h"

namespace gradring::comm {

/// The transport of a world of one, for memory of any device. Collectives of one rank have no steps: they are the
/// identity and cost nothing.
///
/// Errors    InvalidArgument for a step with moves.
std::unique_ptr<Transport> make_single_rank_transport(kernels::Device& device);

}  // namespace gradring::comm
