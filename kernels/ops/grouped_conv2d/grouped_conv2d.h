// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/runtime/stream.h"

/// Kernels for any number of groups, with conv2d's contract, checks and reference.
namespace gradring::kernels::grouped_conv2d {

using conv2d::check_args;
using conv2d::DgradArgs;
using conv2d::ForwardArgs;
using conv2d::Geometry;
using conv2d::Variant;
using conv2d::WgradArgs;

inline namespace GRADRING_KERNEL_COPY {

/// The passes of the direct variant: what the others call for geometries that are not theirs.
void direct_forward(Stream& stream, const ForwardArgs& args);
void direct_dgrad(Stream& stream, const DgradArgs& args);
void direct_wgrad(Stream& stream, const WgradArgs& args);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::grouped_conv2d
