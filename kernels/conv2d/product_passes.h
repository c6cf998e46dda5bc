// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/conv2d/products.cuh"
#include "kernels/conv2d/shares.h"
#include "kernels/lib/element.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// The three passes of a rung that sees them as products. What rungs differ in:
///   Rung::with_type(dtype, visit)                        the types that it knows
///   Rung::enqueue_whole(stream, product, c)              a product with its depth in one piece
///   Rung::enqueue_shares(stream, product, parts, shares) the same, shared out
///   Rung::wgrad_tile(geometry)                           the tile that a share of wgrad is made of
template <class Rung>
struct ProductPasses {
  static void forward(Stream& stream, const ForwardArgs& args) {
    check_args(args);
    if (args.geometry.out_elements() == 0) return;
    Rung::with_type(args.dtype, [&](auto element) {
      using T = typename decltype(element)::type;
      Rung::enqueue_whole(stream, forward_product<T>(args), static_cast<T*>(args.y));
    });
  }

  static void dgrad(Stream& stream, const DgradArgs& args) {
    check_args(args);
    if (args.geometry.in_elements() == 0) return;
    Rung::with_type(args.dtype, [&](auto element) {
      using T = typename decltype(element)::type;
      Rung::enqueue_whole(stream, dgrad_product<T>(args), static_cast<T*>(args.dx));
    });
  }

  static void wgrad(Stream& stream, const WgradArgs& args) {
    check_args(args);
    const Geometry& g = args.geometry;
    if (g.weight_elements() == 0) return;
    float* parts = shares_in(args);
    Rung::with_type(args.dtype, [&](auto element) {
      using T = typename decltype(element)::type;
      const auto product = wgrad_product<T>(args);
      const Shares shares = shares_of(product.rows, product.columns, product.depth, Rung::wgrad_tile(g));
      Rung::enqueue_shares(stream, product, parts, shares);
      add_shares(stream, parts, shares.count, g.weight_elements(), args.dw, args.accumulate);
    });
  }

  static std::size_t workspace_bytes(const Geometry& g) {
    return share_bytes(g.out_channels, g.filter_elements(), g.batch * g.out_height() * g.out_width(),
                       Rung::wgrad_tile(g));
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
