// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/convolution_shape.h"

namespace gradring::kernels::bench {

std::vector<SeedConvolution> seed_convolutions(const CaseMaker& make) {
  const SeedConvolution first{.side = 28, .in = 1, .out = 32};
  const SeedConvolution second{.side = 13, .in = 32, .out = 64};
  for (const char* name : {"height", "width", "in", "out"})
    if (make.is_given(name)) return {second};
  return {first, second};
}

conv2d::Geometry convolution_of(CaseMaker& make, const SeedConvolution& seed) {
  conv2d::Geometry g{.batch = make.extent("batch", 64),
                     .in_height = make.extent("height", seed.side),
                     .in_width = make.extent("width", seed.side),
                     .in_channels = make.extent("in", seed.in),
                     .out_channels = make.extent("out", seed.out)};
  g.kernel_height = g.kernel_width = make.extent("kernel", 3);
  g.stride = make.extent("stride", 1);
  g.padding = make.extent("padding", 0);
  return g;
}

}  // namespace gradring::kernels::bench
