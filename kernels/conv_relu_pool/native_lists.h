// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv_relu_pool/native.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace native {

/// The gradients that pass, channel by channel, for a few samples: how many, over which inputs, and how large. Each is a
/// point of the convolution's output; all others are zero, and cost nothing from here on.
struct Lists {
  std::size_t stride;     // entries that each channel has room for
  std::int32_t* counts;   // [outputs]
  std::int32_t* offsets;  // [outputs][stride]: of the first input under the kernel, in the group's samples
  float* values;          // [outputs][stride]
};

/// Fills the lists for `samples` samples from `first` on, whose inputs lie `sample_stride` apart.
void fill_lists(const Layout& layout, const Backward& pass, std::int64_t first, int samples, int sample_stride,
                const Lists& lists);

/// dw, db += what the lists make of the inputs x. dw: [outputs][rows][padded_run]. The sums of a piece of a filter stay in
/// registers while its list goes by.
void add_products_of_lists(const Layout& layout, const Lists& lists, const float* x, float* dw, float* db);

/// dx += what the lists make of the weights: each entry adds its filter to the inputs under it. w: as dw.
void spread_lists(const Layout& layout, const Lists& lists, const float* w, float* dx);

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
