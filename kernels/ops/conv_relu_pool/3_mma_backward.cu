// SPDX-License-Identifier: Apache-2.0
// Idea: the gradients straight from dy and the codes. dz, of which three quarters are zeros, is unfolded while a tile
//   of it is laid into shared memory, and multiplied there by tensor cores, zeros and all: for them that is cheaper
//   than looking for the rest. A column of ones beside the patches of x makes db a column of the same product as dw.
// Mapping: dw, db: a block per 64 x 64 results (32 x 32 where there are few) and share of the outputs, added up in a
//   second stage, always in the same order. dx: a block per 128 inputs and 64 (or 32) channels.
// Traffic and bound: x and dy are read for each tile of dw; dy and codes kernel_height * kernel_width times for dx;
//   mostly from the caches. 2 * out_elements * window^2 * filter_elements operations for dw, and about as many for dx.
//   Bound by unfolding: loads, comparisons and stores for eight elements of dz serve 64 columns.
// Gains over the steps before: tensor cores; no thread walks through all outputs; db costs nothing.
// Still slow because: dw and dx unfold the same dz twice; its copies cannot run ahead, because they are computed.
// Limits: f16 and bf16; those of conv2d::Patches. An infinity in dy, x or w meets zeros as NaN.

#include "kernels/ops/conv2d/mma_product.cuh"
#include "kernels/ops/conv_relu_pool/mma.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using Wide = conv2d::MmaTile<4, 64, 32>;
using Narrow = conv2d::MmaTile<4, 32, 32>;
using Long = conv2d::MmaTile<2, 64, 32>;  // of dw
using Small = conv2d::MmaTile<1, 32, 32>;

constexpr bool is_small(std::int64_t rows, std::int64_t columns) {
  return rows <= Small::kRows && columns <= Small::kColumns;
}

/// The shares of dw, then those of db.
template <class Tile, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_relu_pool_wgrad_mma_kernel(SIMT_GRID_CONST(P) product, float* __restrict__ dw_shares,
                                    float* __restrict__ db_shares, int share_depth) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  const int begin = static_cast<int>(blockIdx.z) * share_depth;
  const int end = product.depth - begin < share_depth ? product.depth : begin + share_depth;
  conv2d::MmaSums<Tile> sums = {};
  conv2d::add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, begin, end);
  const int weights = product.columns - 1;  // of a filter
  const std::int64_t filter = std::int64_t{blockIdx.z} * product.rows + first_row;
  conv2d::for_each_sum<Tile>(sums, [&](int row, int tile_column, float sum) {
    const int column = first_column + tile_column;
    if (first_row + row >= product.rows) return;
    if (column < weights) dw_shares[(filter + row) * weights + column] = sum;
    if (column == weights) db_shares[filter + row] = sum;
  });
}

template <class Tile, class T, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_relu_pool_dgrad_mma_kernel(SIMT_GRID_CONST(P) product, T* __restrict__ dx) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  conv2d::MmaSums<Tile> sums = {};
  conv2d::add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, 0, product.depth);
  conv2d::for_each_sum<Tile>(sums, [&](int tile_row, int tile_column, float sum) {
    const int row = first_row + tile_row;
    const int column = first_column + tile_column;
    if (row < product.rows && column < product.columns)
      dx[std::int64_t{row} * product.columns + column] = lib::from_f32<T>(sum);
  });
}

struct WgradSizes {
  std::int64_t rows, columns, depth;
  conv2d::TileShape tile() const { return is_small(rows, columns) ? Small::kShape : Long::kShape; }
  conv2d::Shares shares() const { return conv2d::shares_of(rows, columns, depth, tile()); }
};

WgradSizes wgrad_sizes(const Geometry& g) {
  return {g.conv.out_channels, g.conv.filter_elements() + 1,
          g.conv.batch * g.out_height() * g.out_width() * g.window * g.window};
}

template <class Tile, class P>
void launch_wgrad(Stream& stream, const P& product, const conv2d::Shares& shares, float* dw_shares, float* db_shares) {
  const simt::Config config{.grid = conv2d::grid_of(product.rows, product.columns, Tile::kShape, shares),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv_relu_pool_wgrad_mma_kernel<Tile, P>>(stream, config, product, dw_shares, db_shares, shares.depth);
}

template <class T>
void wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  if (g.conv.out_channels == 0) return;
  lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
  const auto* x = static_cast<const T*>(args.x);
  const auto dz = pooled_gradient<T>(args);
  const PatchesAndOnes<T> b{
      {conv2d::Patches::of_outputs(g.conv, pooled_outputs(g)), x, conv2d::has_wide_runs(x, g.conv.in_channels)},
      dz.windows};
  const WgradSizes sizes = wgrad_sizes(g);
  const conv2d::Shares shares = sizes.shares();
  const conv2d::Product product{GradientLines<T>{dz}, b, dz.channels, b.patches.columns() + 1,
                                lib::narrow<int>("conv_relu_pool", "positions", sizes.depth)};
  auto* dw_shares = static_cast<float*>(args.workspace);
  float* db_shares = dw_shares + shares.count * g.conv.weight_elements();
  if (is_small(sizes.rows, sizes.columns))
    launch_wgrad<Small>(stream, product, shares, dw_shares, db_shares);
  else
    launch_wgrad<Long>(stream, product, shares, dw_shares, db_shares);
  conv2d::add_shares(stream, dw_shares, shares.count, g.conv.weight_elements(), args.dw, args.accumulate);
  conv2d::add_shares(stream, db_shares, shares.count, g.conv.out_channels, args.db, args.accumulate);
}

template <class Tile, class T, class P>
void launch_dgrad(Stream& stream, const P& product, T* dx) {
  const conv2d::Shares whole{1, product.depth};
  const simt::Config config{.grid = conv2d::grid_of(product.rows, product.columns, Tile::kShape, whole),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv_relu_pool_dgrad_mma_kernel<Tile, T, P>>(stream, config, product, dx);
}

template <class T>
void dgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  if (g.conv.in_elements() == 0) return;
  const GradientPatches<T> a{conv2d::Patches::of_inputs(g.conv, pooled_outputs(g)), pooled_gradient<T>(args)};
  const auto b = conv2d::turned_filters(g.conv, static_cast<const T*>(args.w));
  const conv2d::Product product{a, b, a.patches.rows(), b.channels, a.patches.columns()};
  if (product.columns <= Narrow::kColumns)
    launch_dgrad<Narrow>(stream, product, static_cast<T*>(args.dx));
  else
    launch_dgrad<Wide>(stream, product, static_cast<T*>(args.dx));
}

}  // namespace

namespace mma {

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    wgrad<T>(stream, args);
    if (args.dx) dgrad<T>(stream, args);
  });
}

std::size_t workspace_bytes(const Geometry& g) {
  const WgradSizes sizes = wgrad_sizes(g);
  return conv2d::share_bytes(sizes.rows, sizes.columns, sizes.depth, sizes.tile());
}

}  // namespace mma

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
