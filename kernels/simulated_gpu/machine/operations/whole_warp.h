// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simulated_gpu/machine/warp.h"

namespace gradring::simulated_gpu {

/// For instructions that are .sync.aligned: whether all lanes of the warp execute it now. If not, those of `active`
/// wait for the others, and execute it again with them.
///
/// Errors    Fault if threads of the warp have ended or never were.
inline bool is_whole_warp(const Operation& operation, Warp& warp, Mask active) {
  if (active == kAllLanes) return true;
  if (warp.living() != kAllLanes)
    warp.fail(operation, lowest_lane(active),
              "an instruction for whole warps is executed by a warp of which threads are missing");
  return warp.are_together(active, kAllLanes);
}

}  // namespace gradring::simulated_gpu
