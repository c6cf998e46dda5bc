// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/ops/peers.h"
#include "kernels/runtime/device.h"

namespace gradring::nn {

/// oneDNN in f32 as a peer of our variants in benchmarks; null if not built in (no_onednn_peers.cpp). `device` is the
/// CPU and must outlive it.
///
/// Example   tests/nn/backend/onednn_peers_test.cpp
std::unique_ptr<kernels::PeerMaker> make_onednn_peers(kernels::Device& device);

}  // namespace gradring::nn
