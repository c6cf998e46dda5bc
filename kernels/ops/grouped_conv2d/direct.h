// SPDX-License-Identifier: Apache-2.0
// The passes of the direct variant: what the others call for geometries that are not depthwise.
#pragma once

#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels::grouped_conv2d {
inline namespace GRADRING_KERNEL_COPY {

void direct_forward(Stream& stream, const ForwardArgs& args);
void direct_dgrad(Stream& stream, const DgradArgs& args);
void direct_wgrad(Stream& stream, const WgradArgs& args);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::grouped_conv2d
