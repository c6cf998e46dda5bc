// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/transport/nccl/nccl.h"

namespace gradring::train {

/// comm::make_nccl_transport for a device of this module: says itself which GPU that is, makes it current, and knows captured
/// streams; `options` need not.
///
/// Errors    as there; DeviceError where the module was built without NCCL (no_nccl.cpp).
std::unique_ptr<comm::Transport> make_nccl_transport(const comm::NcclOptions& options);

}  // namespace gradring::train
