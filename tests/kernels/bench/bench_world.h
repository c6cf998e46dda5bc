// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/host/host_device.h"

namespace gradring::kernels::bench {

/// What a CaseMaker needs.
struct World {
  HostDevice device;
  std::unique_ptr<Stream> stream = device.make_stream(StreamMode::in_place);
  KernelSet kernels = kernel_set();
  std::unique_ptr<Machine> machine = make_cpu_machine();

  CaseMaker maker(Extents extents, DType dtype = DType::f32) {
    return CaseMaker(
        {.kernels = kernels, .device = device, .stream = *stream, .dtype = dtype, .extents = std::move(extents)});
  }
};

/// Extents so small that the references take no time.
inline const Extents kSmall = {{"elements", 1001}, {"rows", 33}, {"channels", 5}, {"classes", 7}, {"batch", 2},
                               {"height", 9},      {"width", 8}, {"in", 3},       {"out", 4},     {"samples", 10},
                               {"pixels", 6},      {"tiles", 3}, {"rounds", 2}};

}  // namespace gradring::kernels::bench
