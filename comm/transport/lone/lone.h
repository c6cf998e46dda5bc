// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/transport/transport.h"
#include "kernels/runtime/device.h"

namespace gradring::comm {

/// The transport of a world of one: memory of any device, and nobody to send to. Collectives of one rank have no steps, so
/// they are the identity and cost nothing.
///
/// Errors    InvalidArgument for a step with moves: it was made for another world.
std::unique_ptr<Transport> make_lone_transport(kernels::Device& device);

}  // namespace gradring::comm
