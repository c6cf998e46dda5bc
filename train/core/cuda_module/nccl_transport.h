// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/transports/nccl/nccl.h"

namespace gradring::train {

/// comm::make_nccl_transport for a device of this module, which sets the options `gpu`, `make_current` and
/// `is_captured`.
///
/// Errors    as there; DeviceError if the module was built without NCCL (no_nccl.cpp).
std::unique_ptr<comm::Transport> make_nccl_transport(const comm::NcclOptions& options);

}  // namespace gradring::train
