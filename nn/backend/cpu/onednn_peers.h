// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/bench/peer_maker.h"
#include "kernels/runtime/device.h"

namespace gradring::nn {

/// oneDNN beside our variants, as "onednn", in f32; null where this build has none. `device` is the CPU and must outlive it.
std::unique_ptr<kernels::bench::PeerMaker> make_onednn_peers(kernels::Device& device);

}  // namespace gradring::nn
