// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/bench/case_maker.h"
#include "kernels/conv2d/conv2d.h"

namespace gradring::kernels::bench {

/// What tells the seed ConvNet's two convolutions apart.
struct SeedConvolution {
  std::int64_t side, in, out;
};

/// Both; one alone where a person names an extent that tells them apart.
std::vector<SeedConvolution> seed_convolutions(const CaseMaker& make);

/// The seed's, with the extents that a person names: batch, height, width, in, out, kernel, stride, padding.
conv2d::Geometry convolution_of(CaseMaker& make, const SeedConvolution& seed);

}  // namespace gradring::kernels::bench
