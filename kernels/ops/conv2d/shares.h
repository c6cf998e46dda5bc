// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/ops/conv2d/products.cuh"
#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

/// Products with few results and long sums (wgrad) leave most of a GPU without a tile. So the depth is shared out:
/// block z adds up the z-th part of it, into a matrix of its own, and a second kernel adds those up, always in the same
/// order.
namespace gradring::kernels::conv2d {

struct Shares {
  int count;
  int depth;  ///< of each share but the last
};

/// A tile of C that one block computes, and the step in which it walks along the depth.
struct TileShape {
  int rows, columns, depth;
};

constexpr std::int64_t tiles_of(std::int64_t extent, std::int64_t width) { return (extent + width - 1) / width; }

/// How many shares there are at most: by the sizes alone, so that every device adds up in the same order. Never less
/// for a larger depth.
constexpr std::int64_t most_shares(std::int64_t rows, std::int64_t columns, std::int64_t depth, const TileShape& tile) {
  constexpr std::int64_t kWarpTiles = 1024;  // of 32 rows: what a large GPU holds at once, and some
  constexpr std::int64_t kLeastSteps = 4;    // a share must be worth storing a tile for
  const std::int64_t warp_tiles = tiles_of(rows, tile.rows) * (tile.rows / 32) * tiles_of(columns, tile.columns);
  const std::int64_t most = kWarpTiles / std::max<std::int64_t>(1, warp_tiles);
  return std::max<std::int64_t>(1, std::min(most, tiles_of(depth, tile.depth) / kLeastSteps));
}

constexpr Shares shares_of(std::int64_t rows, std::int64_t columns, std::int64_t depth, const TileShape& tile) {
  const std::int64_t steps = tiles_of(tiles_of(depth, tile.depth), most_shares(rows, columns, depth, tile));
  const std::int64_t depth_each = std::max<std::int64_t>(1, steps) * tile.depth;
  return {static_cast<int>(std::max<std::int64_t>(1, tiles_of(depth, depth_each))), static_cast<int>(depth_each)};
}

/// Enough for any smaller depth, too.
constexpr std::size_t share_bytes(std::int64_t rows, std::int64_t columns, std::int64_t depth, const TileShape& tile) {
  return static_cast<std::size_t>(most_shares(rows, columns, depth, tile) * rows * columns) * sizeof(float);
}

/// Where the shares of dw are put together.
inline float* shares_in(const WgradArgs& args) {
  lib::check_pointer("conv2d wgrad", "workspace", args.workspace);
  return static_cast<float*>(args.workspace);
}

inline namespace GRADRING_KERNEL_COPY {
/// A block for each tile of each share.
inline dim3 grid_of(std::int64_t rows, std::int64_t columns, const TileShape& tile, const Shares& shares) {
  lib::check_limit("conv2d", "tiles of columns", tiles_of(columns, tile.columns), 65535);
  return {static_cast<unsigned>(tiles_of(rows, tile.rows)), static_cast<unsigned>(tiles_of(columns, tile.columns)),
          static_cast<unsigned>(shares.count)};
}

/// to[i] = sum over s of shares[s][i], added to it if `accumulate`; enqueued. Overwrites the shares.
void add_shares(Stream& stream, float* shares, int count, std::int64_t elements, float* to, bool accumulate);

/// The three passes of a variant that computes them as products. What variants differ in:
///   Step::with_type(dtype, visit)                        the types that it knows
///   Step::enqueue(stream, product, c, shares)            a product; wgrad's is shared out
///   Step::wgrad_tile(geometry)                           the tile that a share of wgrad is made of
template <class Step>
struct ProductPasses {
  static void forward(Stream& stream, const ForwardArgs& args) {
    check_args(args);
    if (args.geometry.out_elements() == 0) return;
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const auto product = forward_product<T>(args);
      Step::enqueue(stream, product, static_cast<T*>(args.y), {1, product.depth});
    });
  }

  static void dgrad(Stream& stream, const DgradArgs& args) {
    check_args(args);
    if (args.geometry.in_elements() == 0) return;
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const auto product = dgrad_product<T>(args);
      Step::enqueue(stream, product, static_cast<T*>(args.dx), {1, product.depth});
    });
  }

  static void wgrad(Stream& stream, const WgradArgs& args) {
    check_args(args);
    const Geometry& g = args.geometry;
    if (g.weight_elements() == 0) return;
    float* parts = shares_in(args);
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const auto product = wgrad_product<T>(args);
      const Shares shares = shares_of(product.rows, product.columns, product.depth, Step::wgrad_tile(g));
      Step::enqueue(stream, product, parts, shares);
      add_shares(stream, parts, shares.count, g.weight_elements(), args.dw, args.accumulate);
    });
  }

  static std::size_t workspace_bytes(const Geometry& g) {
    return share_bytes(g.out_channels, g.filter_elements(), g.batch * g.out_height() * g.out_width(),
                       Step::wgrad_tile(g));
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
