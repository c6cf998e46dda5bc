// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each (and a few without), which a build must find or must let pass.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "kernels/runtime/device.h"

namespace gradring::simt_test {

struct Planted {
  std::string_view name;
  /// Launches the kernel on a new stream of `device`; returns whether its result is right.
  std::function<bool(kernels::Device& device)> run;
};

/// Missing or misplaced synchronisation, and the correct kernels beside it.
std::span<const Planted> planted_races();
/// The same at the barriers of a pipe.
std::span<const Planted> planted_pipe_races();
/// Accesses where nothing is, or where something narrower is.
std::span<const Planted> planted_accesses();
/// Barriers and warp operations whose partners never come.
std::span<const Planted> planted_divergence();

}  // namespace gradring::simt_test
